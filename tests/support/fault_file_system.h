// tests/support/fault_file_system.h — a disk that can be told to fail, and to lose what was not
// synced.
//
// It writes through to the real file system and remembers, for each file, how much of it was
// synced, and which directory entries (new files, renames) were made durable by an fsync of their
// directory. A power cut then is: CutPower (from here on nothing is written), destroy the store,
// LoseUnsynced. Its fsync touches no disk, so tests run at full speed.
//
// Errors:  injected ones only: every call is counted, and the n-th can be made to fail or to cut
//          the power.
// Threads: any; RocksDB calls from several.
// Source:  RocksDB's public FileSystemWrapper; the model of LevelDB's fault_injection_test.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

namespace delayd::test {

enum class IoCall : uint8_t {
  kCreate,
  kAppend,
  kSync,
  kDirectorySync,
  kRename,
  kDelete,
  kTruncate,
  kOpenForRead,
  kRead,
};

const char* IoCallName(IoCall call);

enum class IoFault : uint8_t {
  kEio,         // an I/O error; nothing happened
  kEnospc,      // no space left; nothing happened
  kShortWrite,  // half of an append arrives, then an I/O error; elsewhere as kEio
  kPowerCut,    // this call and every later one fail, as CutPower
};

struct PowerLoss {
  enum class Tail : uint8_t {
    kGone,           // every unsynced byte
    kPrefixKept,     // a random part of them arrived
    kZeroedSectors,  // and random sectors of that part are zero
  };
  Tail tail = Tail::kGone;
  // Of new files and renames whose directory was not synced only a random first part, in order,
  // survives (none with Tail::kGone).
  bool lose_directory_entries = true;
  uint64_t seed = 1;
};

class FaultFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  FaultFileSystem();
  ~FaultFileSystem() override;

  const char* Name() const override { return "FaultFileSystem"; }

  // The n-th call from now on (0 is the next) fails so, once. With `only`, the n-th of that kind.
  void FailCall(uint64_t n, IoFault fault);
  void FailCall(IoCall only, uint64_t n, IoFault fault);

  // What was struck, such as "sync of /tmp/x/000004.log"; empty when no fault has struck yet.
  std::string struck() const;

  // Is told the same at that moment, from the thread that made the call. Set it before the first.
  void OnStrike(std::function<void(const std::string& what)> listener);

  // Calls so far, of one kind and of all.
  uint64_t calls(IoCall call) const;
  uint64_t calls() const;

  void CutPower();

  // Power is back, the disk shows what survived. The store that used it must be gone. Returns how
  // many bytes were lost.
  uint64_t LoseUnsynced(const PowerLoss& loss);

  // RocksDB's own log is a file like the others too. Else it is on a disk that never fails: what
  // becomes of it is nobody's matter.
  void CountInfoLog() { counts_info_log_ = true; }

  // Forgets what is to fail; the counters go on.
  void ClearFaults();

  rocksdb::IOStatus NewSequentialFile(const std::string& path,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                        rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path,
                                    const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& path,
                                       const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* result,
                                       rocksdb::IODebugContext* debug) override;

  // The wrapper's would go past NewWritableFile.
  rocksdb::IOStatus NewLogger(const std::string& path,
                              const rocksdb::IOOptions& options,
                              std::shared_ptr<rocksdb::Logger>* result,
                              rocksdb::IODebugContext* debug) override {
    return FileSystem::NewLogger(path, options, result, debug);
  }

  rocksdb::IOStatus NewDirectory(const std::string& path,
                                 const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* result,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& path,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Truncate(const std::string& path,
                             size_t size,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from,
                               const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus LinkFile(const std::string& from,
                             const std::string& to,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override;

  // What the files and directories it hands out report back.
  class Disk;

 private:
  std::shared_ptr<Disk> disk_;
  bool counts_info_log_ = false;
};

// For RocksJobStoreOptions. Its sleep returns at once: RocksDB waits a second after a failed flush.
std::unique_ptr<rocksdb::Env> NewFaultEnv(const std::shared_ptr<rocksdb::FileSystem>& file_system);

}  // namespace delayd::test
