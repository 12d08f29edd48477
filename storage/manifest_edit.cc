#include "storage/manifest_edit.h"

#include "base/coding.h"

namespace delayd::storage {
namespace {

// Fields of a MANIFEST record, numbered by RocksDB's VersionEdit. The small ones come first in a
// record, and notes of logs in records without files; what else there is is of no interest here.
enum EditField : uint64_t {
  kComparator = 1,
  kLogNumber = 2,
  kNextFileNumber = 3,
  kLastSequence = 4,
  kPrevLogNumber = 9,
  kMinLogNumberToKeep = 10,
  kMaxColumnFamily = 203,
  kWalAddition2 = 8199,
};

enum LogField : uint64_t { kEndOfLog = 1, kSyncedBytes = 2 };

ManifestEdit::Log ReadLog(std::string_view bytes) {
  ByteReader reader(bytes);
  ManifestEdit::Log log;
  log.number = reader.Varint();
  if (reader.Varint() == kSyncedBytes) {
    log.bytes = reader.Varint();
  }
  return reader.ok() && reader.Varint() == kEndOfLog ? log : ManifestEdit::Log{};
}

}  // namespace

ManifestEdit ReadManifestEdit(std::string_view bytes) {
  ManifestEdit edit;
  ByteReader reader(bytes);
  while (reader.remaining() > 0) {
    const uint64_t field = reader.Varint();
    switch (field) {
      case kComparator:
        (void)reader.Bytes();
        break;
      case kLogNumber:
      case kNextFileNumber:
      case kPrevLogNumber:
      case kMaxColumnFamily:
        (void)reader.Varint();
        break;
      case kMinLogNumberToKeep:
      case kLastSequence: {
        const uint64_t number = reader.Varint();
        if (reader.ok()) {
          (field == kLastSequence ? edit.last_sequence : edit.min_log_number_to_keep) = number;
        }
        break;
      }
      case kWalAddition2:
        edit.logs.push_back(ReadLog(reader.Bytes()));
        break;
      default:
        return edit;
    }
  }
  return edit;
}

}  // namespace delayd::storage
