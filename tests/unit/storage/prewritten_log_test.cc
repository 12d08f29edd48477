// The zeroes ahead of a log's records, where they find no room.
#include "storage/prewritten_log.h"

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <rocksdb/file_system.h>

#include "tests/support/temp_dir.h"

namespace delayd::storage {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// As on a disk that is full but for a record.
class NoRoomAhead final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  NoRoomAhead(std::unique_ptr<rocksdb::FSWritableFile> file, int* refusals)
      : FSWritableFileOwnerWrapper(std::move(file)), refusals_(refusals) {}

  IOStatus PositionedAppend(const Slice& data,
                            uint64_t at,
                            const IOOptions& options,
                            IODebugContext* debug) override {
    if (data.size() < 1024) {
      return target()->PositionedAppend(data, at, options, debug);
    }
    // Only the first: who asks again would do so for ever.
    return ++*refusals_ == 1 ? IOStatus::NoSpace() : IOStatus::IOError("asked again");
  }

 private:
  int* refusals_;
};

class NoRoomAheadFiles final : public rocksdb::FileSystemWrapper {
 public:
  explicit NoRoomAheadFiles(int* refusals)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), refusals_(refusals) {}

  const char* Name() const override { return "NoRoomAheadFiles"; }

  IOStatus NewWritableFile(const std::string& name,
                           const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext* debug) override {
    IOStatus status = target()->NewWritableFile(name, options, result, debug);
    *result = std::make_unique<NoRoomAhead>(std::move(*result), refusals_);
    return status;
  }

 private:
  int* refusals_;
};

TEST(PrewrittenLogTest, P1ARecordThatFitsIsWrittenWhereNothingFitsAheadOfIt) {
  const test::TempDir dir;
  int refusals = 0;
  const auto files = NewPrewrittenLogs(std::make_shared<NoRoomAheadFiles>(&refusals));
  std::unique_ptr<rocksdb::FSWritableFile> log;
  ASSERT_TRUE(files->NewWritableFile(dir.Sub("000001.log"), {}, &log, nullptr).ok());
  for (const char* record : {"one", "two"}) {
    const IOStatus written = log->Append(record, IOOptions(), nullptr);
    ASSERT_TRUE(written.ok()) << written.ToString();
    ASSERT_TRUE(log->Sync(IOOptions(), nullptr).ok());
  }
  ASSERT_TRUE(log->Close(IOOptions(), nullptr).ok());
  EXPECT_EQ(refusals, 1);
  std::string content;
  ASSERT_TRUE(rocksdb::ReadFileToString(files.get(), dir.Sub("000001.log"), &content).ok());
  EXPECT_EQ(content, "onetwo");
}

}  // namespace
}  // namespace delayd::storage
