#include "storage/batch_rep.h"

#include <bit>
#include <cstring>

namespace delayd::storage {
namespace {

static_assert(std::endian::native == std::endian::little);

// What kind of operation follows: in the default family, or in one that is named.
constexpr char kDelete = 0x0;
constexpr char kPut = 0x1;
constexpr char kDeleteInFamily = 0x4;
constexpr char kPutInFamily = 0x5;

constexpr size_t kSequenceBytes = 8;
constexpr size_t kCountBytes = 4;
constexpr size_t kVarintBytesMax = 5;
// Its kind, the family, the sizes of key and value.
constexpr size_t kOpBytesMax = 1 + 3 * kVarintBytesMax;

char* WriteVarint(char* to, size_t value) {
  for (; value >= 0x80; value >>= 7) {
    *to++ = static_cast<char>(value | 0x80);
  }
  *to++ = static_cast<char>(value);
  return to;
}

char* WriteSized(char* to, std::string_view bytes) {
  to = WriteVarint(to, bytes.size());
  std::memcpy(to, bytes.data(), bytes.size());
  return to + bytes.size();
}

char* WriteKind(char* to, bool is_delete, uint32_t family) {
  if (family == 0) {
    *to = is_delete ? kDelete : kPut;
    return to + 1;
  }
  *to = is_delete ? kDeleteInFamily : kPutInFamily;
  return WriteVarint(to + 1, family);
}

}  // namespace

std::string RepOf(const Batch& batch, std::span<const WriteOrder::Row> rows, const FamilyIds& ids) {
  std::string rep(kSequenceBytes + kCountBytes + rows.size() * kOpBytesMax + batch.bytes(), '\0');
  const auto count = static_cast<uint32_t>(rows.size());
  std::memcpy(rep.data() + kSequenceBytes, &count, kCountBytes);
  char* to = rep.data() + kSequenceBytes + kCountBytes;
  for (const WriteOrder::Row& row : rows) {
    const Batch::Op op = batch.op(row.index);
    to = WriteKind(to, op.is_delete, ids[static_cast<size_t>(op.table)]);
    to = WriteSized(to, op.key);
    if (!op.is_delete) {
      to = WriteSized(to, op.value);
    }
  }
  rep.resize(static_cast<size_t>(to - rep.data()));
  return rep;
}

}  // namespace delayd::storage
