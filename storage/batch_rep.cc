#include "storage/batch_rep.h"

#include "base/coding.h"

namespace delayd::storage {
namespace {

// The kind of operation that follows: in the default family, or in a named one.
constexpr uint8_t kDelete = 0x0;
constexpr uint8_t kPut = 0x1;
constexpr uint8_t kDeleteInFamily = 0x4;
constexpr uint8_t kPutInFamily = 0x5;

constexpr size_t kVarintBytesMax = 5;
// The kind, the family, and the sizes of key and value.
constexpr size_t kOpBytesMax = 1 + 3 * kVarintBytesMax;

void AppendKind(std::string* rep, bool is_delete, uint32_t family) {
  if (family == 0) {
    AppendU8(rep, is_delete ? kDelete : kPut);
    return;
  }
  AppendU8(rep, is_delete ? kDeleteInFamily : kPutInFamily);
  AppendVarint(rep, family);
}

}  // namespace

std::string RepOf(const Batch& batch, std::span<const WriteOrder::Row> rows, const FamilyIds& ids) {
  std::string rep;
  rep.reserve(sizeof(uint64_t) + sizeof(uint32_t) + rows.size() * kOpBytesMax + batch.bytes());
  AppendU64(&rep, 0);                                                      // the sequence number
  AppendU32(&rep, __builtin_bswap32(static_cast<uint32_t>(rows.size())));  // little-endian
  for (const WriteOrder::Row& row : rows) {
    const Batch::Op op = batch.op(row.index);
    AppendKind(&rep, op.is_delete, ids[static_cast<size_t>(op.table)]);
    AppendBytes(&rep, op.key);
    if (!op.is_delete) {
      AppendBytes(&rep, op.value);
    }
  }
  return rep;
}

}  // namespace delayd::storage
