#include "storage/checked_tables.h"

#include <optional>
#include <string>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/coding.h"
#include "storage/masked_crc.h"

namespace delayd::storage {
namespace {

using rocksdb::IOStatus;

constexpr size_t kFooterBytes = 53;
constexpr size_t kVersionAt = 41;  // in the footer
constexpr size_t kMagicAt = 45;
constexpr size_t kTrailerBytes = 5;
constexpr size_t kMetaBlockBytesMax = size_t{16} << 20;
constexpr uint64_t kMagic = 0x88e241b785f4cff7;
constexpr uint8_t kCrc32cType = 1;  // used by stores of some earlier versions
constexpr uint8_t kXxh3Type = 4;
constexpr std::string_view kProperties = "rocksdb.properties";

struct Handle {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// The checksum of a block and the compression-type byte behind it, as RocksDB computes it.
using Checksum = uint32_t (*)(std::string_view sealed);

uint32_t Crc32cOfBlock(std::string_view sealed) {
  return MaskCrc(Crc32c(sealed));
}

uint32_t Xxh3OfBlock(std::string_view sealed) {
  constexpr uint32_t kLastBytePrime = 0x6b9083d9;
  const auto hash = static_cast<uint32_t>(XXH3_64bits(sealed.data(), sealed.size() - 1));
  return hash ^ static_cast<uint8_t>(sealed.back()) * kLastBytePrime;
}

// nullptr: a type that delayd never writes.
Checksum ChecksumOf(uint8_t type) {
  return type == kXxh3Type ? Xxh3OfBlock : type == kCrc32cType ? Crc32cOfBlock : nullptr;
}

class TableTail {
 public:
  TableTail(const std::string& path, uint64_t size, const rocksdb::FSRandomAccessFile& file)
      : path_(path), size_(size), file_(file) {}

  IOStatus Check() const;

 private:
  IOStatus Damaged(uint64_t offset, const std::string& what) const {
    return IOStatus::Corruption("table file " + path_ + " is damaged at byte " +
                                std::to_string(offset) + ": " + what);
  }

  IOStatus Read(uint64_t offset, size_t count, std::string* bytes) const {
    std::string scratch(count, '\0');
    rocksdb::Slice got;
    const IOStatus status =
        file_.Read(offset, count, rocksdb::IOOptions(), &got, scratch.data(), nullptr);
    if (status.ok() && got.size() != count) {
      return Damaged(offset + got.size(), "it ends too early");
    }
    bytes->assign(got.data(), got.size());
    return status;
  }

  // Reads a block and verifies its checksum.
  IOStatus ReadBlock(const Handle& handle,
                     const std::string& name,
                     Checksum checksum,
                     std::string* bytes) const {
    const uint64_t blocks_end = size_ - kFooterBytes;
    if (handle.size > kMetaBlockBytesMax || handle.offset > blocks_end ||
        handle.size + kTrailerBytes > blocks_end - handle.offset) {
      return Damaged(blocks_end, name + " cannot lie where the footer says");
    }
    const auto size = static_cast<size_t>(handle.size);
    if (IOStatus status = Read(handle.offset, size + kTrailerBytes, bytes); !status.ok()) {
      return status;
    }
    const std::string_view sealed(bytes->data(), size + 1);
    if (checksum(sealed) != LittleEndian(std::string_view(*bytes).substr(size + 1))) {
      return Damaged(handle.offset, name + " has a wrong checksum");
    }
    bytes->resize(size);
    return IOStatus::OK();
  }

  const std::string& path_;
  const uint64_t size_;
  const rocksdb::FSRandomAccessFile& file_;
};

// RocksDB's varints are the same as ours: seven bits per byte, the lowest first.
std::optional<Handle> ReadHandle(ByteReader* reader) {
  const Handle handle{.offset = reader->Varint(), .size = reader->Varint()};
  return reader->ok() ? std::optional(handle) : std::nullopt;
}

// Entries of [shared | unshared | value size, varints | unshared key bytes | value], then the
// restart points and their count.
std::optional<Handle> FindProperties(std::string_view block) {
  if (block.size() < sizeof(uint32_t)) {
    return std::nullopt;
  }
  const uint64_t restarts = LittleEndian(block.substr(block.size() - sizeof(uint32_t)));
  const uint64_t tail = (restarts + 1) * sizeof(uint32_t);
  if (tail > block.size()) {
    return std::nullopt;
  }
  ByteReader reader(block.substr(0, block.size() - tail));
  std::string key;
  while (reader.ok() && reader.remaining() > 0) {
    const uint64_t shared = reader.Varint();
    const uint64_t unshared = reader.Varint();
    const uint64_t value_size = reader.Varint();
    if (shared > key.size() || unshared > reader.remaining()) {
      return std::nullopt;
    }
    key.resize(shared);
    key += reader.Raw(unshared);
    if (value_size > reader.remaining()) {
      return std::nullopt;
    }
    ByteReader value(reader.Raw(value_size));
    if (key == kProperties) {
      return ReadHandle(&value);
    }
  }
  return std::nullopt;
}

IOStatus TableTail::Check() const {
  if (size_ < kFooterBytes) {
    return Damaged(size_, "it is too short for a table");
  }
  const uint64_t footer_at = size_ - kFooterBytes;
  std::string footer;
  if (IOStatus status = Read(footer_at, kFooterBytes, &footer); !status.ok()) {
    return status;
  }
  const std::string_view bytes(footer);
  const uint64_t magic = uint64_t{LittleEndian(bytes.substr(kMagicAt + 4))} << 32 |
                         LittleEndian(bytes.substr(kMagicAt, 4));
  if (magic != kMagic) {
    return Damaged(footer_at + kMagicAt, "the mark of a table file is not there");
  }
  if (LittleEndian(bytes.substr(kVersionAt, 4)) != kTableFormatVersion) {
    return Damaged(footer_at + kVersionAt, "its format version is not what delayd writes");
  }
  const Checksum checksum = ChecksumOf(static_cast<uint8_t>(bytes.front()));
  if (checksum == nullptr) {
    return Damaged(footer_at, "its checksum type is not what delayd writes");
  }
  ByteReader handles(bytes.substr(1, kVersionAt - 1));
  const std::optional<Handle> metaindex = ReadHandle(&handles);
  if (!metaindex) {
    return Damaged(footer_at, "the footer cannot be read");
  }
  std::string block;
  if (IOStatus status = ReadBlock(*metaindex, "the metaindex", checksum, &block); !status.ok()) {
    return status;
  }
  const std::optional<Handle> properties = FindProperties(block);
  if (!properties) {
    return Damaged(metaindex->offset, "the metaindex names no properties");
  }
  return ReadBlock(*properties, "the block of properties", checksum, &block);
}

class CheckedTables final : public rocksdb::FileSystemWrapper {
 public:
  explicit CheckedTables(const std::shared_ptr<rocksdb::FileSystem>& base)
      : FileSystemWrapper(base) {}

  const char* Name() const override { return "CheckedTables"; }

  IOStatus NewRandomAccessFile(const std::string& name,
                               const rocksdb::FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                               rocksdb::IODebugContext* debug) override {
    IOStatus status = target()->NewRandomAccessFile(name, options, result, debug);
    if (!status.ok() || !name.ends_with(".sst")) {
      return status;
    }
    uint64_t size = 0;
    status = target()->GetFileSize(name, options.io_options, &size, debug);
    return status.ok() ? TableTail(name, size, **result).Check() : status;
  }
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> NewCheckedTables(
    const std::shared_ptr<rocksdb::FileSystem>& base) {
  return std::make_shared<CheckedTables>(base);
}

}  // namespace delayd::storage
