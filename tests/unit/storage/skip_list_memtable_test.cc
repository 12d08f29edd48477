// The memtable of ours beside RocksDB's own, under the same writes: every read gives the same.
#include "storage/skip_list_memtable.h"

#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include "tests/support/seed.h"
#include "tests/support/temp_dir.h"

namespace delayd::storage {
namespace {

using Iterator = std::unique_ptr<rocksdb::Iterator>;

class SkipListMemtableTest : public ::testing::Test {
 protected:
  SkipListMemtableTest() : ours_(Open("ours", true)), theirs_(Open("theirs", false)) {}

  std::unique_ptr<rocksdb::DB> Open(const std::string& name, bool ours) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.allow_concurrent_memtable_write = false;
    options.write_buffer_size = 64 << 10;  // small: flushes and several memtables at once
    if (ours) {
      options.memtable_factory =
          NewSkipListMemtables(random_() % 2 == 0 ? HeadKind::kFirstBytes : HeadKind::kQueueTimeId);
    }
    rocksdb::DB* db = nullptr;
    const rocksdb::Status opened = rocksdb::DB::Open(options, dir_.Sub(name), &db);
    EXPECT_TRUE(opened.ok()) << opened.ToString();
    return std::unique_ptr<rocksdb::DB>(db);
  }

  std::string RandomKey() {
    std::string key = random_() % 2 == 0 ? "row" : "a row that begins like many others/";
    return key + std::to_string(random_() % 300);
  }

  // Puts and deletes, often of the same row twice.
  void WriteBatch() {
    rocksdb::WriteBatch batch;
    for (size_t i = random_() % 40; i > 0; --i) {
      const std::string key = RandomKey();
      if (random_() % 3 == 0) {
        ASSERT_TRUE(batch.Delete(key).ok());
      } else {
        ASSERT_TRUE(batch.Put(key, std::string(random_() % 200, 'v') + key).ok());
      }
    }
    for (rocksdb::DB* db : {ours_.get(), theirs_.get()}) {
      rocksdb::WriteBatch copy = batch;
      ASSERT_TRUE(db->Write(rocksdb::WriteOptions(), &copy).ok());
    }
  }

  void ExpectSameAt(const Iterator& ours, const Iterator& theirs) {
    ASSERT_EQ(ours->Valid(), theirs->Valid());
    if (ours->Valid()) {
      ASSERT_EQ(ours->key(), theirs->key());
      ASSERT_EQ(ours->value(), theirs->value());
    }
  }

  // Steps both ways, turning round on the way.
  void Walk(const Iterator& ours, const Iterator& theirs) {
    const auto both = [&](auto&& move) {
      move(*ours);
      move(*theirs);
      ExpectSameAt(ours, theirs);
    };
    const std::string key = RandomKey();
    switch (random_() % 4) {
      case 0:
        both([](rocksdb::Iterator& i) { i.SeekToFirst(); });
        break;
      case 1:
        both([](rocksdb::Iterator& i) { i.SeekToLast(); });
        break;
      case 2:
        both([&](rocksdb::Iterator& i) { i.Seek(key); });
        break;
      default:
        both([&](rocksdb::Iterator& i) { i.SeekForPrev(key); });
    }
    const auto turn = random_() % 100;
    for (int step = 0; step < 60 && theirs->Valid(); ++step) {
      if (random_() % 100 < turn) {
        both([](rocksdb::Iterator& i) { i.Next(); });
      } else {
        both([](rocksdb::Iterator& i) { i.Prev(); });
      }
    }
  }

  test::TempDir dir_;
  std::mt19937_64 random_{test::Seed()};
  std::unique_ptr<rocksdb::DB> ours_;
  std::unique_ptr<rocksdb::DB> theirs_;
};

TEST_F(SkipListMemtableTest, ReadsLikeRocksDbsOwn) {
  struct View {
    Iterator ours;
    Iterator theirs;
  };

  std::vector<View> views;
  for (int round = 0; round < 600; ++round) {
    WriteBatch();
    if (views.size() < 20) {
      views.push_back({.ours = Iterator(ours_->NewIterator(rocksdb::ReadOptions())),
                       .theirs = Iterator(theirs_->NewIterator(rocksdb::ReadOptions()))});
    } else {
      views.erase(views.begin() + static_cast<std::ptrdiff_t>(random_() % views.size()));
    }
    const View& view = views[random_() % views.size()];
    ASSERT_NO_FATAL_FAILURE(Walk(view.ours, view.theirs)) << "round " << round;
    const std::string key = RandomKey();
    std::string ours;
    std::string theirs;
    ASSERT_EQ(ours_->Get(rocksdb::ReadOptions(), key, &ours).code(),
              theirs_->Get(rocksdb::ReadOptions(), key, &theirs).code());
    ASSERT_EQ(ours, theirs);
  }
}

TEST_F(SkipListMemtableTest, IteratorsComeAndGoInSeveralThreads) {
  const auto read = [this] {
    for (int i = 0; i < 500; ++i) {
      const Iterator iterator(ours_->NewIterator(rocksdb::ReadOptions()));
      std::string last;
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
        ASSERT_LT(last, iterator->key().ToString());
        last = iterator->key().ToString();
      }
      std::string value;
      ASSERT_FALSE(ours_->Get(rocksdb::ReadOptions(), "absent", &value).ok());
    }
  };
  std::jthread one(read);
  std::jthread two(read);
  for (int i = 0; i < 500; ++i) {
    WriteBatch();
  }
}

}  // namespace
}  // namespace delayd::storage
