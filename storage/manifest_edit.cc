#include "storage/manifest_edit.h"

#include "base/coding.h"

namespace delayd::storage {
namespace {

// Fields of a MANIFEST record, numbered as in RocksDB's VersionEdit. Within a record the small
// fields come first, then table files; logs are noted in records without table files. Other fields
// are not needed here.
enum EditField : uint64_t {
  kComparator = 1,
  kLogNumber = 2,
  kNextFileNumber = 3,
  kLastSequence = 4,
  kCompactCursor = 5,
  kDeletedFile = 6,
  kPrevLogNumber = 9,
  kMinLogNumberToKeep = 10,
  kNewFile4 = 103,
  kMaxColumnFamily = 203,
  kWalAddition2 = 8199,
};

enum TableField : uint64_t { kEndOfTable = 1 };

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

// Returns the table's number. After the fields common to all tables come optional ones, up to an
// end mark.
uint64_t ReadTable(ByteReader* reader) {
  (void)reader->Varint();  // level
  const uint64_t number = reader->Varint();
  (void)reader->Varint();  // size
  (void)reader->Bytes();   // first key
  (void)reader->Bytes();   // last key
  (void)reader->Varint();  // first change
  (void)reader->Varint();  // last change
  while (reader->ok() && reader->Varint() != kEndOfTable) {
    (void)reader->Bytes();
  }
  return number;
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
      case kCompactCursor:
        (void)reader.Varint();
        (void)reader.Bytes();
        break;
      case kDeletedFile:
        (void)reader.Varint();
        (void)reader.Varint();
        break;
      case kNewFile4: {
        const uint64_t number = ReadTable(&reader);
        if (reader.ok()) {
          edit.tables.push_back(number);
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
