// tests/storm/storm.h — one data directory, a crowd of clients, and the daemon killed again and
// again; at the end the clients' history must agree with the promises.
//
// Errors:  what is wrong is a line of text, gathered in violations(); the first one ends the storm.
// Threads: one; the clients and the daemon are processes of their own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/checker/checker.h"
#include "tests/storm/crash_points.h"
#include "tests/storm/cut_file_system.h"
#include "tests/storm/history_log.h"
#include "tests/storm/io_faults.h"
#include "tests/support/process.h"

namespace delayd::storm {

struct StormOptions {
  uint64_t seed = 1;
  std::string directory;  // history, logs and sockets; exists
  std::string data_dir;   // may be on another file system
  uint32_t clients = 3;
  uint32_t tube_clients = 1;  // which speak beanstalk
};

class Storm {
 public:
  explicit Storm(const StormOptions& options);
  ~Storm();

  // An empty directory: the daemon dies at every place of a first start, then comes up.
  void Begin();
  // Each makes the daemon end in its way, and starts it again.
  void KillAtRandom();
  void StopInOrder();
  // False: it did not come to that place.
  bool CrashAt(const CrashPointCase& point, uint32_t hit);
  // False: the daemon went on, because the fault did not strike or did no harm.
  bool FailIo(const IoFaultCase& fault, uint32_t call);
  // Cuts the power under the running daemon; then a new start on what the disk has kept.
  void CutPower(CutFileSystem* disk);
  // Drains, lists what is left, checks the history and the store.
  void Finish();

  bool ok() const { return violations_.empty(); }

  const std::vector<std::string>& violations() const { return violations_; }

  const checker::Verdict& verdict() const { return verdict_; }

  std::string history_path() const { return options_.directory + "/history.jsonl"; }

  std::string tube_socket() const { return options_.directory + "/b.sock"; }

 private:
  // Ready, or ended before it was. `fault`: what shall become of the daemon, in its environment.
  bool TryStart(const std::map<std::string, std::string>& fault = {});
  void StartAgain();
  void StartClients();
  bool WaitForDeath(int milliseconds);
  // `look`: at the stopped store; else it is done after every fourth death.
  void NoteDeath(bool look = false);
  void TearNewestLog();
  void NoteStore();
  void CheckLog();
  void WaitUntilDrained();
  void ListWhatIsLeft();

  void Violation(const std::string& what) { violations_.push_back(what); }

  // Of all its daemons.
  std::string Log() const;
  std::string LastLogLines() const;

  const StormOptions options_;
  const std::string server_;
  std::mt19937_64 random_;
  HistoryLog history_;
  std::unique_ptr<test::Process> daemon_;
  std::vector<std::unique_ptr<test::Process>> clients_;
  std::vector<std::string> violations_;
  checker::Verdict verdict_;
};

}  // namespace delayd::storm
