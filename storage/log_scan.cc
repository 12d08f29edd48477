#include "storage/log_scan.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "base/read_up_to.h"
#include "base/unique_fd.h"
#include "storage/masked_crc.h"
#include "storage/posix_error.h"

#include <sys/stat.h>

namespace delayd::storage {
namespace {

constexpr size_t kBlockBytes = 32768;
constexpr size_t kHeaderBytes = 7;

enum PieceType : uint8_t { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

struct Piece {
  uint8_t type = 0;
  std::string_view payload;
};

size_t BlockEnd(size_t at) {
  return at / kBlockBytes * kBlockBytes + kBlockBytes;
}

// The piece that begins at `at`, if that is a valid one.
std::optional<Piece> PieceAt(std::string_view log, size_t at) {
  const size_t block_end = std::min(log.size(), BlockEnd(at));
  if (at + kHeaderBytes > block_end) {
    return std::nullopt;
  }
  const uint8_t type = static_cast<uint8_t>(log[at + 6]);
  const size_t length = LittleEndian(log.substr(at + 4, 2));
  if (type < kFull || type > kLast || at + kHeaderBytes + length > block_end) {
    return std::nullopt;
  }
  // The crc covers the type and the payload.
  if (MaskCrc(Crc32c(log.substr(at + 6, 1 + length))) != LittleEndian(log.substr(at, 4))) {
    return std::nullopt;
  }
  return Piece{.type = type, .payload = log.substr(at + kHeaderBytes, length)};
}

// A header, perhaps a damaged one, is at `at`. If it belongs to a record that goes on in the next
// block, and its length reaches exactly to the end of its block, the length is not damaged. Then
// the rest of the block is payload, whatever its client made it look like.
bool FillsItsBlock(std::string_view log, size_t at) {
  if (at + kHeaderBytes > log.size()) {
    return false;
  }
  const uint8_t type = static_cast<uint8_t>(log[at + 6]);
  const size_t length = LittleEndian(log.substr(at + 4, 2));
  return (type == kFirst || type == kMiddle) && at + kHeaderBytes + length == BlockEnd(at);
}

bool OnlyZeroes(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

// The rest of a block that is too short for a header is filled with zeroes.
bool IsBlockTrailer(std::string_view log, size_t at) {
  const size_t left = kBlockBytes - at % kBlockBytes;
  return left < kHeaderBytes && OnlyZeroes(log.substr(at, left));
}

class Scanner {
 public:
  Scanner(std::string_view log, const LogScanOptions& options) : log_(log), options_(options) {
    scan_.bytes = log.size();
    if (options.all_is_lost) {
      scan_.damaged_at = 0;
    }
  }

  LogScan Run() {
    size_t at = 0;
    while (at < log_.size()) {
      const std::optional<Piece> piece = PieceAt(log_, at);
      if (piece.has_value()) {
        Take(*piece, at);
        at += kHeaderBytes + piece->payload.size();
        continue;
      }
      if (IsBlockTrailer(log_, at)) {
        at = std::min(log_.size(), BlockEnd(at));
        continue;
      }
      if (!scan_.damaged_at.has_value() && OnlyZeroes(log_.substr(at))) {
        break;
      }
      const bool is_header = !scan_.damaged_at.has_value() || at % kBlockBytes == 0;
      Damaged();
      // The length cannot be trusted: look for the next valid piece at every byte.
      at = is_header && FillsItsBlock(log_, at) ? BlockEnd(at) : at + 1;
    }
    if (in_record_) {
      Damaged();
    }
    return std::move(scan_);
  }

 private:
  void Damaged() {
    in_record_ = false;
    if (!scan_.damaged_at.has_value()) {
      scan_.damaged_at = record_end_;
    }
  }

  void Take(const Piece& piece, size_t at) {
    const bool starts = piece.type == kFull || piece.type == kFirst;
    // Either a start inside a record, or a piece that continues nothing.
    if (starts == in_record_) {
      Damaged();
    }
    if (starts) {
      record_.clear();
      in_record_ = true;
    }
    if (!in_record_) {
      return;
    }
    if (scan_.damaged_at.has_value() || options_.visit_whole) {
      record_ += piece.payload;
    }
    if (piece.type == kFull || piece.type == kLast) {
      in_record_ = false;
      Finish(at + kHeaderBytes + piece.payload.size());
    }
  }

  void Finish(size_t end) {
    if (!scan_.damaged_at.has_value()) {
      ++scan_.records;
      record_end_ = end;
      if (options_.visit_whole) {
        options_.visit_whole(record_);
        scan_.last_whole.swap(record_);
      }
      return;
    }
    ++scan_.records_behind;
    if (options_.visit_lost) {
      options_.visit_lost(record_);
    }
  }

  std::string_view log_;
  const LogScanOptions& options_;
  LogScan scan_;
  bool in_record_ = false;
  size_t record_end_ = 0;  // of the last whole record before the damage
  std::string record_;     // the pieces so far, kept only if they are needed
};

}  // namespace

LogScan ScanLog(std::string_view log, const LogScanOptions& options) {
  return Scanner(log, options).Run();
}

StatusOr<LogScan> ScanLogFile(const std::string& path, const LogScanOptions& options) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    return PosixError("cannot open", path);
  }

  struct stat info {};

  if (::fstat(file.get(), &info) != 0) {
    return PosixError("cannot read", path);
  }
  const std::optional<std::string> log = ReadUpTo(file.get(), static_cast<size_t>(info.st_size));
  if (!log.has_value()) {
    return PosixError("cannot read", path);
  }
  return ScanLog(*log, options);
}

}  // namespace delayd::storage
