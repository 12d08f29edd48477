// daemon/server.h — the turn: wait, read, execute, advance, commit, answer.
//
// What:    one thread owns the engine and all sessions. A turn runs every handler that is ready,
//          reads the clocks, after the reads, executes what has arrived, reads them again and lets
//          the engine's time go on, sends the answers that rest on nothing that is not durable, and
//          hands a batch to the committer when none is in flight. It sleeps until the engine's next
//          event, with no ticking in between; the last 50 us before a job that somebody waits for
//          it stays awake.
// Units:   base/time.h.
// Errors:  Run returns the status of the commit that failed, or the engine's fatal(): the process
//          must end then. Requests whose outcome is unknown have been told so.
// Threads: the thread that calls Run; inside, a committer thread, one for the commands of an
//          operator, one that reads the files of a reload and one that gives memory back.
// Cost:    a turn costs the system calls of its connections and what the engine does.
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

// What the turn tells an operator's monitoring.
struct ServerFigures {
  Histogram commit_us;     // from the hand-over to the committer until the batch is durable
  Histogram commit_jobs;   // jobs that a batch changes
  Histogram commit_bytes;  // of a batch
  std::optional<Millis> commit_running;  // how long the one in flight has been
  uint64_t connections = 0;
  uint64_t accepted = 0;
  uint64_t accept_failures = 0;
  uint64_t refused = 0;      // above connections_max
  uint64_t timed_out = 0;    // too slow, or idle for too long
  uint64_t crowded_out = 0;  // had most, above held_bytes_max
  uint64_t turns = 0;
  uint64_t slow_turns = 0;
  uint64_t slow_commits = 0;
  uint64_t late_wakes = 0;  // turns that began kLateWake or more behind the time that was asked for
  std::optional<Millis> processors_awake;  // how long they were kept so; none: they are not
  bool stopping = false;
};

struct ServerOptions {
  uint32_t connections_max = 1024;
  Millis idle_timeout{std::chrono::minutes(5)};
  Millis head_timeout{std::chrono::seconds(10)};
  Millis linger_timeout{std::chrono::seconds(2)};
  // Above this no request is taken until a commit has made room, but for those that only read.
  size_t uncommitted_bytes_max = size_t{16} << 20;
  // What all clients together may have lying here, as Session::held_bytes counts it. Above it the
  // client that has most is let go of.
  size_t held_bytes_max = 16 * limits::kRequestBodyBytesMax;
  // How long a stop waits for clients that do not read their answers.
  Millis stop_grace{std::chrono::seconds(5)};
  // Called at least this often while the turn goes round; for a service manager's watchdog.
  std::optional<Millis> heartbeat_interval;
  std::function<void()> heartbeat;
  // Called when a drain has begun or ended.
  std::function<void()> drain_changed;
  // Called when a reload begins.
  std::function<void()> reloading;
  // Called for SIGHUP beside the turn, on another thread: it reads files. What it returns is called
  // in a turn, for the settings that the queues have from then on; nothing leaves them as they are.
  using ApplyReload = std::function<std::optional<engine::Configure>()>;
  std::function<ApplyReload()> reload;
  // What takes longer is logged and counted.
  Millis slow_turn{250};
  Millis slow_commit{1000};
  // What is under way for so long is told before it has ended.
  Millis commit_late = kCommitLate;
  Millis commit_stuck = kCommitStuck;
  // Null, or the clock that the server was given: it is tended, and accepted when a client says so.
  TrustedClock* trusted_clock = nullptr;
  // Null: the processors sleep between two requests.
  AwakeProcessors* processors = nullptr;
  // Called at the begin of a turn, with its time; may be empty.
  std::function<void(const Now&)> turn_begins = {};
  // Called once when a stop begins.
  std::function<void()> stopping;
  // Below it new jobs are refused; without a reserve the disk is not watched.
  DiskReserveOptions disk;
  // Called on a thread of its own when clients have let go of much memory, and of little more
  // since: nobody needs what the allocator keeps of it. Empty: it is kept.
  std::function<void()> give_back_memory;
  // How long it must have been little.
  Millis memory_rest{std::chrono::seconds(10)};
  // What runs an operator's commands; empty: they are refused.
  AdminFunction admin;
};

class Server {
 public:
  using SessionFactory = std::function<std::unique_ptr<Session>()>;

  // All three must outlive the server. The engine's first batch, which makes its epoch durable,
  // has been committed by the caller. From here on SIGTERM and SIGINT are a stop in order.
  Server(const ServerOptions& options,
         engine::Engine* engine,
         storage::JobStore* store,
         const Clock* clock);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Takes connections from `listener`; each gets a session of `factory`. Above the cap it gets the
  // bytes `no_room` instead, and is closed.
  void Listen(Listener listener, SessionFactory factory, std::string no_room);

  // Until SIGTERM, SIGINT or Stop, then until what was under way is answered and durable. A second
  // signal ends the process at once, as does any when the server has gone. From SIGUSR1 on no new
  // jobs are taken (engine::Drain).
  Status Run();
  // As the first signal. From the thread of Run.
  void Stop();
  // From the thread of Run.
  ServerFigures Figures(const Now& now) const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace delayd
