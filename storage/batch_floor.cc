#include "storage/batch_floor.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <optional>

#include "base/coding.h"
#include "base/crash_point.h"
#include "storage/files.h"
#include "storage/posix_error.h"

namespace delayd::storage {
namespace {

// "batch 00000000000000012345 crc 89abcdef\n": always of the same length, so that it is overwritten
// in place, within one sector.
std::string Line(uint64_t number) {
  char text[64];
  int size = std::snprintf(text, sizeof text, "batch %020" PRIu64, number);
  const uint32_t crc = Crc32c({text, static_cast<size_t>(size)});
  size += std::snprintf(text + size, sizeof text - static_cast<size_t>(size), " crc %08x\n", crc);
  return {text, static_cast<size_t>(size)};
}

}  // namespace

std::optional<uint64_t> BatchFloor::Read() const {
  const StatusOr<std::optional<std::string>> text = ReadFileIfThere(path_);
  if (!text.ok() || !text->has_value()) {
    return std::nullopt;
  }
  uint64_t number = 0;
  if (std::sscanf((*text)->c_str(), "batch %" SCNu64, &number) != 1 || **text != Line(number)) {
    return std::nullopt;
  }
  return number;
}

void BatchFloor::Raise(uint64_t number) {
  if (number >= written_ + step_) {
    step_ = std::min(2 * step_, kBatchFloorStep);
    // If the write fails, the old floor stays, which is still true.
    (void)Write(number);
  }
}

Status BatchFloor::Set(uint64_t number) {
  DELAYD_RETURN_IF_ERROR(Write(number));
  DELAYD_CRASH_POINT("floor/before_sync");
  if (::fdatasync(file_.get()) != 0) {
    return PosixError("cannot fsync", path_);
  }
  return OkStatus();
}

Status BatchFloor::Open() {
  if (!file_.valid()) {
    file_ = UniqueFd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  }
  return file_.valid() ? OkStatus() : PosixError("cannot open", path_);
}

Status BatchFloor::Write(uint64_t number) {
  DELAYD_RETURN_IF_ERROR(Open());
  const std::string line = Line(number);
  if (::pwrite(file_.get(), line.data(), line.size(), 0) != static_cast<ssize_t>(line.size())) {
    return PosixError("cannot write", path_);
  }
  written_ = number;
  return OkStatus();
}

}  // namespace delayd::storage
