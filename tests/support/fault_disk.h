// tests/support/fault_disk.h — what a FaultFileSystem knows about its disk: what is synced, what is
// to fail, and what a power cut takes away. Internal to fault_file_system.cc.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fault_file_system.h"
#include "tests/support/files.h"

namespace delayd::test {

inline constexpr size_t kCallKinds = 9;
inline constexpr uint64_t kSectorBytes = 512;

inline std::string ReadPart(const std::string& path, uint64_t offset, uint64_t size) {
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  std::string part(size, '\0');
  in.read(part.data(), static_cast<std::streamsize>(size));
  return part;
}

inline uint64_t SizeOf(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

// What is known about the disk, shared by the file system and everything it handed out.
class FaultFileSystem::Disk {
 public:
  struct Verdict {
    rocksdb::IOStatus status;
    bool write_half = false;
  };

  // Every call asks first.
  Verdict Enter(IoCall call, const std::string& path) {
    const std::scoped_lock lock(mutex_);
    const uint64_t of_kind = calls_[static_cast<size_t>(call)]++;
    const uint64_t of_all = all_calls_++;
    if (power_is_off_) {
      return {rocksdb::IOStatus::IOError("the power is off", path)};
    }
    if (!plan_.has_value() || plan_->at != (plan_->only.has_value() ? of_kind : of_all) ||
        (plan_->only.has_value() && *plan_->only != call)) {
      return {rocksdb::IOStatus::OK()};
    }
    const IoFault fault = plan_->fault;
    plan_.reset();
    struck_ = std::string(IoCallName(call)) + " of " + path;
    if (on_strike_) {
      on_strike_(struck_);
    }
    power_is_off_ = fault == IoFault::kPowerCut;
    if (fault == IoFault::kEnospc) {
      return {rocksdb::IOStatus::NoSpace("injected", path)};
    }
    return {rocksdb::IOStatus::IOError("injected", path), fault == IoFault::kShortWrite};
  }

  void Plan(std::optional<IoCall> only, uint64_t n, IoFault fault) {
    const std::scoped_lock lock(mutex_);
    const uint64_t base = only.has_value() ? calls_[static_cast<size_t>(*only)] : all_calls_;
    plan_ = {.only = only, .at = base + n, .fault = fault};
    struck_.clear();
  }

  void ClearPlan() {
    const std::scoped_lock lock(mutex_);
    plan_.reset();
    struck_.clear();
  }

  std::string struck() const {
    const std::scoped_lock lock(mutex_);
    return struck_;
  }

  void OnStrike(std::function<void(const std::string& what)> listener) {
    const std::scoped_lock lock(mutex_);
    on_strike_ = std::move(listener);
  }

  uint64_t calls(IoCall call) const {
    const std::scoped_lock lock(mutex_);
    return calls_[static_cast<size_t>(call)];
  }

  uint64_t calls() const {
    const std::scoped_lock lock(mutex_);
    return all_calls_;
  }

  void CutPower() {
    const std::scoped_lock lock(mutex_);
    power_is_off_ = true;
  }

  void Created(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    synced_bytes_[path] = 0;
    changes_.push_back({.name = path});
  }

  void OpenedAgain(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    synced_bytes_.try_emplace(path, SizeOf(path));
  }

  void Synced(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    synced_bytes_[path] = SizeOf(path);
    overwritten_.erase(path);
  }

  // Called before the write: what it covers of the synced bytes may have to come back.
  void WillWriteAt(const std::string& path, uint64_t offset, uint64_t size) {
    const std::scoped_lock lock(mutex_);
    const uint64_t end = std::min(offset + size, synced_bytes_[path]);
    if (offset < end) {
      overwritten_[path].push_back({.at = offset, .old = ReadPart(path, offset, end - offset)});
    }
  }

  void Truncated(const std::string& path, uint64_t size) {
    const std::scoped_lock lock(mutex_);
    const auto file = synced_bytes_.find(path);
    if (file != synced_bytes_.end()) {
      file->second = std::min(file->second, size);
    }
  }

  // A deletion is taken to be durable at once; files that come back are not modelled.
  void Deleted(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    synced_bytes_.erase(path);
    std::erase_if(changes_, [&](const Change& change) { return change.name == path; });
  }

  // Called before the rename: it may have to be undone.
  void WillRename(const std::string& from, const std::string& to) {
    const std::scoped_lock lock(mutex_);
    Change change{.name = to, .renamed_from = from};
    if (std::filesystem::exists(to)) {
      change.replaced = ReadFile(to);
    }
    changes_.push_back(std::move(change));
    const auto file = synced_bytes_.find(from);
    if (file != synced_bytes_.end()) {
      synced_bytes_[to] = file->second;
      synced_bytes_.erase(from);
    } else {
      synced_bytes_.erase(to);
    }
  }

  void DirectorySynced(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    const auto directory = std::filesystem::path(path + "/").lexically_normal().parent_path();
    std::erase_if(changes_, [&](const Change& change) {
      return std::filesystem::path(change.name).parent_path() == directory;
    });
  }

  uint64_t LoseUnsynced(const PowerLoss& loss) {
    const std::scoped_lock lock(mutex_);
    std::mt19937_64 random(loss.seed);
    uint64_t lost = 0;
    for (const auto& [path, synced] : synced_bytes_) {
      lost += CutFile(path, synced, loss.tail, &random);
      lost += TakeBack(path, overwritten_[path], loss.tail, &random);
    }
    overwritten_.clear();
    if (loss.lose_directory_entries) {
      size_t kept = 0;
      if (loss.tail != PowerLoss::Tail::kGone) {
        kept = random() % (changes_.size() + 1);
      }
      while (changes_.size() > kept) {
        Undo(changes_.back());
        changes_.pop_back();
      }
    }
    synced_bytes_.clear();
    changes_.clear();
    plan_.reset();
    power_is_off_ = false;
    return lost;
  }

 private:
  struct Fault {
    std::optional<IoCall> only;
    uint64_t at = 0;
    IoFault fault = IoFault::kEio;
  };

  // Synced bytes as they were before a write that no sync has covered yet.
  struct Overwritten {
    uint64_t at = 0;
    std::string old;
  };

  // A directory entry that no directory sync has covered yet.
  struct Change {
    std::string name;
    std::string renamed_from = {};                       // empty: a new file
    std::optional<std::string> replaced = std::nullopt;  // what `name` held before the rename
  };

  static uint64_t CutFile(const std::string& path,
                          uint64_t synced,
                          PowerLoss::Tail tail,
                          std::mt19937_64* random) {
    const uint64_t size = SizeOf(path);
    if (size <= synced) {
      return 0;
    }
    uint64_t kept = synced;
    if (tail != PowerLoss::Tail::kGone) {
      kept += (*random)() % (size - synced + 1);
    }
    std::filesystem::resize_file(path, kept);
    if (tail == PowerLoss::Tail::kZeroedSectors) {
      std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      const std::string zeroes(kSectorBytes, '\0');
      // A sector that holds synced bytes was written whole and stays.
      for (uint64_t at = (synced + kSectorBytes - 1) / kSectorBytes * kSectorBytes; at < kept;
           at += kSectorBytes) {
        if (((*random)() & 1) != 0) {
          file.seekp(static_cast<std::streamoff>(at));
          file.write(zeroes.data(),
                     static_cast<std::streamsize>(std::min(kSectorBytes, kept - at)));
        }
      }
    }
    return size - kept;
  }

  // Of what was overwritten a first part is new, in the order of the writes, and of that part
  // random sectors are not.
  static uint64_t TakeBack(const std::string& path,
                           const std::vector<Overwritten>& writes,
                           PowerLoss::Tail tail,
                           std::mt19937_64* random) {
    uint64_t total = 0;
    for (const Overwritten& write : writes) {
      total += write.old.size();
    }
    if (total == 0) {
      return 0;
    }
    const uint64_t kept = tail == PowerLoss::Tail::kGone ? 0 : (*random)() % (total + 1);
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    uint64_t begin = 0;
    for (const Overwritten& write : writes) {
      const uint64_t here = std::clamp<uint64_t>(kept, begin, begin + write.old.size()) - begin;
      begin += write.old.size();
      const auto restore = [&](uint64_t from, uint64_t to) {
        file.seekp(static_cast<std::streamoff>(write.at + from));
        file.write(write.old.data() + from, static_cast<std::streamsize>(to - from));
      };
      restore(here, write.old.size());
      for (uint64_t at = 0; tail == PowerLoss::Tail::kZeroedSectors && at < here;) {
        const uint64_t next = std::min(here, at + kSectorBytes - (write.at + at) % kSectorBytes);
        if (((*random)() & 1) != 0) {
          restore(at, next);
        }
        at = next;
      }
    }
    return total - kept;
  }

  static void Undo(const Change& change) {
    std::error_code ignored;
    if (change.renamed_from.empty()) {
      std::filesystem::remove(change.name, ignored);
      return;
    }
    std::filesystem::rename(change.name, change.renamed_from, ignored);
    if (change.replaced.has_value()) {
      WriteFile(change.name, *change.replaced);
    }
  }

  mutable std::mutex mutex_;
  std::array<uint64_t, kCallKinds> calls_{};
  uint64_t all_calls_ = 0;
  std::optional<Fault> plan_;
  std::string struck_;
  std::function<void(const std::string& what)> on_strike_;
  bool power_is_off_ = false;
  std::map<std::string, uint64_t> synced_bytes_;  // files that were written here
  std::map<std::string, std::vector<Overwritten>> overwritten_;
  std::vector<Change> changes_;  // oldest first
};

}  // namespace delayd::test
