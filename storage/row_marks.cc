#include "storage/row_marks.h"

#include <utility>

#include "base/coding.h"

namespace delayd::storage {
namespace {

// The size of a key, then the marks: each a key and the number of rows before it, which is signed.
// The last mark is the file's last key, and its number includes that key.
constexpr std::string_view kProperty = "delayd.row_marks";
constexpr size_t kRowsBytes = sizeof(uint32_t);

void AppendMark(std::string* marks, std::string_view key, int64_t rows) {
  marks->append(key);
  AppendU32(marks, static_cast<uint32_t>(rows));
}

class Collector final : public rocksdb::TablePropertiesCollector {
 public:
  rocksdb::Status AddUserKey(const rocksdb::Slice& key,
                             const rocksdb::Slice& /*value*/,
                             rocksdb::EntryType type,
                             rocksdb::SequenceNumber /*sequence*/,
                             uint64_t /*file_size*/) override {
    if (entries_ == 0) {
      AppendU8(&property_, static_cast<uint8_t>(key.size()));
    }
    if (entries_++ % kEntriesPerMark == 0) {
      AppendMark(&property_, key.ToStringView(), rows_);
    }
    last_.assign(key.data(), key.size());
    rows_ += type == rocksdb::kEntryPut ? 1 : -1;
    return rocksdb::Status::OK();
  }

  rocksdb::Status Finish(rocksdb::UserCollectedProperties* properties) override {
    if (entries_ > 0) {
      AppendMark(&property_, last_, rows_);
      properties->insert_or_assign(std::string(kProperty), std::move(property_));
    }
    return rocksdb::Status::OK();
  }

  // For tools that print the properties of a file: the marks mean nothing to people.
  rocksdb::UserCollectedProperties GetReadableProperties() const override { return {}; }

  const char* Name() const override { return "delayd.RowMarks"; }

 private:
  std::string property_;
  std::string last_;
  uint64_t entries_ = 0;
  int64_t rows_ = 0;
};

class Collectors final : public rocksdb::TablePropertiesCollectorFactory {
 public:
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(Context /*context*/) override {
    return new Collector;
  }

  const char* Name() const override { return "delayd.RowMarks"; }
};

}  // namespace

std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> NewRowMarks() {
  return std::make_shared<Collectors>();
}

RowMarks::RowMarks(const rocksdb::TableProperties& properties,
                   std::string_view smallest,
                   std::string_view largest)
    : key_bytes_(smallest.size()) {
  const auto found = properties.user_collected_properties.find(std::string(kProperty));
  if (found != properties.user_collected_properties.end() && !found->second.empty()) {
    marks_ = found->second;
    const auto key_bytes = static_cast<uint8_t>(marks_[0]);
    marks_.remove_prefix(1);
    if (key_bytes == key_bytes_ && !marks_.empty() && marks_.size() % mark_bytes() == 0) {
      return;
    }
  }
  if (smallest.size() == largest.size()) {
    AppendMark(&at_ends_, smallest, 0);
    AppendMark(&at_ends_,
               largest,
               static_cast<int64_t>(properties.num_entries) -
                   2 * static_cast<int64_t>(properties.num_deletions));
  }
  marks_ = at_ends_;
}

size_t RowMarks::mark_bytes() const {
  return key_bytes_ + kRowsBytes;
}

std::string_view RowMarks::KeyAt(size_t mark) const {
  return marks_.substr(mark * mark_bytes(), key_bytes_);
}

int64_t RowMarks::RowsAt(size_t mark) const {
  return static_cast<int32_t>(
      ByteReader(marks_.substr(mark * mark_bytes() + key_bytes_, kRowsBytes)).U32());
}

int64_t RowMarks::Before(std::string_view key) const {
  const size_t marks = marks_.size() / mark_bytes();
  size_t before = 0;  // how many marks have keys before `key`
  for (size_t end = marks; before < end;) {
    const size_t middle = before + (end - before) / 2;
    if (KeyAt(middle) < key) {
      before = middle + 1;
    } else {
      end = middle;
    }
  }
  if (before == 0) {
    return 0;
  }
  if (before == marks) {
    return RowsAt(marks - 1);
  }
  return (RowsAt(before - 1) + RowsAt(before)) / 2;
}

}  // namespace delayd::storage
