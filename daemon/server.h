// daemon/server.h — the turn: wait, read, execute, advance, commit, answer.
//
// What:    one thread owns the engine and all sessions. A turn runs every ready handler, then reads
//          the clocks and executes what has arrived. It reads the clocks again, advances the
//          engine to that time, sends the answers that depend only on durable changes, and commits
//          a batch if none is in flight. Then the thread sleeps until the engine's next event,
//          without ticking; it stays awake for the last 50 us before the due time of a job that a
//          client waits for.
// Units:   base/time.h.
// Errors:  Run returns the status of the commit that failed, or the engine's fatal(): the process
//          must end then. Clients whose requests have an unknown outcome have been told so.
// Threads: the thread that calls Run; inside, a committer thread, one for an operator's commands,
//          one that reads the files of a reload and one that returns memory to the system.
// Cost:    a turn costs the system calls of its connections and the engine's work.
// Source:  Redis' beforeSleep: commands first, one fsync for all of them, then the answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/time.h"
#include "daemon/admin.h"
#include "daemon/awake_processors.h"
#include "daemon/commit_watch.h"
#include "daemon/disk_reserve.h"
#include "daemon/engine/engine.h"
#include "daemon/listener.h"
#include "daemon/session.h"
#include "daemon/trusted_clock.h"
#include "storage/job_store.h"

namespace delayd {

// The turn's figures for an operator's monitoring.
struct ServerFigures {
  Histogram commit_us;     // from the hand-over to the committer until the batch is durable
  Histogram commit_jobs;   // jobs that a batch changes
  Histogram commit_bytes;  // of a batch
  std::optional<Millis> commit_running;  // age of the commit in flight
  uint64_t connections = 0;
  uint64_t accepted = 0;
  uint64_t accept_failures = 0;
  uint64_t refused = 0;      // above connections_max
  uint64_t timed_out = 0;    // too slow, or idle for too long
  uint64_t crowded_out = 0;  // held the most, above held_bytes_max
  uint64_t turns = 0;
  uint64_t slow_turns = 0;
  uint64_t slow_commits = 0;
  uint64_t late_wakes = 0;  // turns that began kLateWake or more after the requested time
  std::optional<Millis> processors_awake;  // total time kept awake; none: the setting is off
  bool stopping = false;
};

struct ServerOptions {
  uint32_t connections_max = 1024;
  Millis idle_timeout{std::chrono::minutes(5)};
  Millis head_timeout{std::chrono::seconds(10)};
  Millis linger_timeout{std::chrono::seconds(2)};
  // Above this only requests that read are taken until a commit has made room.
  size_t uncommitted_bytes_max = size_t{16} << 20;
  // The limit on Session::held_bytes of all clients together. Above it the client that holds the
  // most is refused or disconnected.
  size_t held_bytes_max = 16 * limits::kRequestBodyBytesMax;
  // How long a stop waits for clients that do not read their answers.
  Millis stop_grace{std::chrono::seconds(5)};
  // `heartbeat` is called about this often while turns go on, for a service manager's watchdog.
  std::optional<Millis> heartbeat_interval;
  std::function<void()> heartbeat;
  // Called when a drain has begun or ended.
  std::function<void()> drain_changed;
  // Called when a reload begins.
  std::function<void()> reloading;
  // `reload` is called for SIGHUP, on another thread since it reads files. The function that it
  // returns is called in a turn and yields the new settings of the queues; none leaves them as
  // they are.
  using ApplyReload = std::function<std::optional<engine::Configure>()>;
  std::function<ApplyReload()> reload;
  // Turns and commits that take longer are logged and counted.
  Millis slow_turn{250};
  Millis slow_commit{1000};
  // A commit that has run for so long is logged before it has ended (daemon/commit_watch.h).
  Millis commit_late = kCommitLate;
  Millis commit_stuck = kCommitStuck;
  // Null, or the clock that the server was given: the server tends it, and accepts it when a client
  // says so.
  TrustedClock* trusted_clock = nullptr;
  // Null: the processors may sleep between requests.
  AwakeProcessors* processors = nullptr;
  // Called at the beginning of a turn, with its time; may be empty.
  std::function<void(const Now&)> turn_begins = {};
  // Called once when a stop begins.
  std::function<void()> stopping;
  // Below the reserve new jobs are refused; without a reserve the disk is not watched.
  DiskReserveOptions disk;
  // Called on a thread of its own once clients have released much memory and little more since:
  // then nobody needs what the allocator still holds. Empty: the allocator keeps it.
  std::function<void()> give_back_memory;
  // How long little must have been released.
  Millis memory_rest{std::chrono::seconds(10)};
  // Runs an operator's commands; empty: they are refused.
  AdminFunction admin;
};

class Server {
 public:
  using SessionFactory = std::function<std::unique_ptr<Session>()>;

  // All three must outlive the server. The caller has already committed the engine's first batch,
  // which makes its epoch durable. From here on SIGTERM and SIGINT cause an orderly stop.
  Server(const ServerOptions& options,
         engine::Engine* engine,
         storage::JobStore* store,
         const Clock* clock);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Accepts connections from `listener`; each gets a session from `factory`. Above the limit a
  // connection gets the bytes `no_room` instead, and is closed.
  void Listen(Listener listener, SessionFactory factory, std::string no_room);

  // Runs until SIGTERM, SIGINT or Stop, then until everything under way is answered and durable. A
  // signal a second or more after the first ends the process at once, as does the first of all when
  // it comes after the server is destroyed. From SIGUSR1 on no new jobs are taken (engine::Drain).
  Status Run();
  // Acts like the first signal. On the thread of Run.
  void Stop();
  // On the thread of Run.
  ServerFigures Figures(const Now& now) const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace delayd
