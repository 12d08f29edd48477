// A MANIFEST that was cut knows less than there is. RocksDB takes table files that it does not know
// for left over, and removes them: no loss is accepted that would cost them.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/storage/recovery_fixture.h"

namespace delayd::storage {
namespace {

using ::testing::HasSubstr;

class ManifestCutTest : public RecoveryTest {
 protected:
  // Of one life: jobs 1 to 10 were flushed into table files, and job 11 after them.
  void MakeStore(bool ended_in_order) {
    for (const std::string& directory : {path(), dir_.Sub("backup"), dir_.Sub("kept")}) {
      fs::remove_all(directory);
    }
    auto store = Open();
    ASSERT_TRUE(store.ok());
    for (uint64_t number = 1; number <= 11; ++number) {
      if (number == 11) {
        ASSERT_TRUE(BackUpRocksJobStore(store->get(), dir_.Sub("backup")).ok());  // it flushes
      }
      Batch batch;
      batch.Put(Table::kTimers, Key(number), "x");
      batch.Put(Table::kMeta, kBatchNumberKey, EncodeNumber(kBatchNumberKey, number));
      ASSERT_TRUE((*store)->Commit(batch).ok());
    }
    if (ended_in_order) {
      ASSERT_TRUE((*store)->Close().ok());
    }
    store->reset();
    fs::copy(path(), dir_.Sub("kept"), fs::copy_options::recursive);
  }

  void TakeItBack() const {
    fs::remove_all(path());
    fs::copy(dir_.Sub("kept"), path(), fs::copy_options::recursive);
  }

  std::set<std::string> Tables() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(path())) {
      if (entry.path().extension() == ".sst") {
        names.insert(entry.path().filename());
      }
    }
    return names;
  }

  // The ends of the records, and a place in each.
  static std::vector<size_t> Places(const std::string& manifest) {
    constexpr size_t kHeaderBytes = 7;  // four of checksum, two of length, the type
    std::vector<size_t> places;
    for (size_t at = 0; at < manifest.size();) {
      places.insert(places.end(), {at, at + 5});
      at += kHeaderBytes + static_cast<unsigned char>(manifest.at(at + 4)) +
            256U * static_cast<unsigned char>(manifest.at(at + 5));
    }
    return places;
  }

  // Cut there, it is refused and named, all files stay as they are, and it may be put back; or what
  // the tables hold is there.
  void ExpectNoTableIsLost(size_t at) {
    const std::string manifest = Manifest();
    const std::string whole = ReadFile(manifest);
    const std::set<std::string> tables = Tables();
    for (const bool accept_loss : {false, true}) {
      WriteFile(manifest, whole.substr(0, at));
      const auto store = Open(accept_loss);
      if (store.ok()) {
        EXPECT_GE(Jobs(**store).size(), 10U) << "cut at byte " << at;
        return;
      }
      EXPECT_THAT(store.status().message(), HasSubstr("MANIFEST")) << "cut at byte " << at;
      EXPECT_EQ(Tables(), tables) << "cut at byte " << at;
      EXPECT_EQ(ReadFile(manifest).size(), at) << "nothing was changed";
      EXPECT_FALSE(fs::exists(path() + "/damaged")) << "cut at byte " << at;
    }
    WriteFile(manifest, whole);
    const auto store = Open();
    ASSERT_TRUE(store.ok()) << "cut at byte " << at << ": " << store.status().message();
    EXPECT_EQ(Jobs(**store).size(), 11U) << "cut at byte " << at;
  }
};

TEST_F(ManifestCutTest, P9ACutManifestCostsNoTableFile) {
  for (const bool ended_in_order : {false, true}) {
    MakeStore(ended_in_order);
    for (const size_t at : Places(ReadFile(Manifest()))) {
      TakeItBack();
      ExpectNoTableIsLost(at);
    }
  }
}

// To the letter of what the refusal says.
TEST_F(ManifestCutTest, P9WhoMovesTheTableFilesThatItDoesNotKnowAwayMayGoOnWithoutThem) {
  int followed = 0;
  for (const bool ended_in_order : {false, true}) {
    MakeStore(ended_in_order);
    for (const size_t at : Places(ReadFile(Manifest()))) {
      TakeItBack();
      WriteFile(Manifest(), ReadFile(Manifest()).substr(0, at));
      const std::string refused(Open().status().message());
      if (refused.find("move them to another directory") == std::string::npos) {
        continue;
      }
      ++followed;
      for (const std::string& table : Tables()) {
        if (refused.find(table) != std::string::npos) {
          fs::remove(path() + "/" + table);
        }
      }
      EXPECT_THAT(Open().status().message(), HasSubstr("delayctl recover --accept-loss"));
      EXPECT_TRUE(Open(true).ok()) << "cut at byte " << at;
    }
  }
  EXPECT_GT(followed, 0);
}

}  // namespace
}  // namespace delayd::storage
