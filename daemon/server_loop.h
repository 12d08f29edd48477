// daemon/server_loop.h — the inside of Server. Internal: Asio must not leak through server.h.
//
// Threads: the core thread; the committer and the side threads post to it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/committer.h"
#include "daemon/connection.h"
#include "daemon/once_a_minute.h"
#include "daemon/server.h"
#include "daemon/side_thread.h"
#include "daemon/wake_timer.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

namespace delayd {

class Server::Loop {
 public:
  Loop(const ServerOptions& options,
       engine::Engine* engine,
       storage::JobStore* store,
       const Clock* clock);

  // However Run has ended, an operator's command that is under way gives up.
  ~Loop() {
    stop_admin_.store(true);
    EndAtNextSignal();
  }

  void Listen(Listener listener, SessionFactory factory, std::string no_room);
  Status Run();
  void Stop();
  ServerFigures Figures(const Now& now) const;

 private:
  using ConnectionPtr = std::shared_ptr<Connection>;

  struct Door {
    Listener listener;
    SessionFactory factory;
    std::string no_room;
    boost::asio::posix::stream_descriptor waiter;  // a duplicate: the listener owns the socket
    // No client is accepted before this time; none: the door waits for one.
    std::optional<BootTime> rests_until = std::nullopt;
  };

  // A request that has been given to the engine.
  struct Pending {
    ConnectionPtr connection;
    uint64_t tag = 0;
    bool is_lease = false;
    bool names_job = false;  // leases one given job, so it cannot be answered with no job
    bool changes = false;    // its outcome is unknown if a commit fails
  };

  // The slowest command of a turn, including the time to parse it.
  struct SlowestCommand {
    std::string_view name = "none";
    std::chrono::steady_clock::duration took{};
  };

  struct CommitResult {
    uint64_t sequence = 0;
    Status status;
    std::chrono::steady_clock::time_point at;
  };

  // ---- The turn (server.cc) ----
  std::chrono::steady_clock::time_point Wait();
  void ReadUntil(std::chrono::steady_clock::time_point end);
  void StayAwake();
  Status TimedTurn(std::chrono::steady_clock::time_point begin);
  Status Turn();
  void NoteLateWake(const Now& now);
  void TendClock(Now* now);
  void NoteWork(const Now& now);
  void TendProcessors(const Now& now);
  void LogIncidents();
  void Beat(const Now& now);
  void AskForWake(const Now& now);
  std::optional<BootMicros> NextEvent(const Now& now) const;
  std::optional<BootMicros> NextWake(std::optional<BootMicros> event, const Now& now) const;
  bool under_pressure() const;

  // ---- Requests (server_requests.cc) ----
  void ServeTouched(Now* now);
  void ServeFirstNextTurn(size_t begin, const Now& now);
  void Serve(const ConnectionPtr& connection,
             std::chrono::steady_clock::time_point until,
             Now* now);
  std::optional<SessionRequest> TakeRequest(Connection* connection,
                                            bool may_deliver,
                                            const Now& now);
  void Execute(const ConnectionPtr& connection, uint64_t tag, engine::Command&& command, Now* now);
  void EndInput(Connection* connection, const Now& now);

  // ---- Answers (server_answers.cc) ----
  void DeliverReplies();
  void SendReady();
  void DeliverReply(engine::Reply* reply);
  void FinishTouched(const Now& now);
  bool FinishOne(const ConnectionPtr& connection, const Now& now);
  bool waits_for_room(const Session& session) const;
  void NoteDamage(const Status& answer);
  Status FailAll(Status cause);

  // ---- Commits (server_commit.cc) ----
  Status Submit(const Now& now);
  void AnswerDurable(uint64_t sequence);
  bool is_small(const engine::SealedBatch& batch) const;
  bool is_expected_soon(const Now& now) const;
  Status TakeCommit(const CommitResult& result);
  void NoteCommit(const CommitResult& result);
  void WatchCommit(const Now& now);
  void DiskChanged(const Status& refusal);

  // ---- Outside the turn (server_side_threads.cc) ----
  void StartAdmin(const ConnectionPtr& connection, uint64_t tag, AdminCommand command);
  void FinishAdmin(const AdminAnswer& answer);
  void TendReload(const Now& now);
  void TendMemory(const Now& now);

  // ---- Doors (server_doors.cc) ----
  void WaitForClients(Door* door);
  void AcceptFrom(Door* door);
  void RestFrom(Door* door, int error);
  void NoteRefused(const Door& door);
  void WaitForMoreClients(const Now& now);

  // ---- Connections (server_connections.cc) ----
  void Touch(const ConnectionPtr& connection);
  void Read(const ConnectionPtr& connection);
  void Greet();
  static void LookForHangup(Connection* connection);
  void GiveUpLeases(Connection* connection, const Now& now);
  void RefuseForbidden(const Now& now);
  void QueueGiveBack(const std::vector<LeaseToken>& tokens);
  void GiveUpUntold(Connection* connection, const Now& now);
  void EndWaits(const Connection& connection, const Now& now);
  void Leave(Connection* connection, const Now& now);
  void GiveBackSome(const Now& now);
  void Drop(const ConnectionPtr& connection, const Now& now);
  void NoteHeld(Connection* connection, size_t bytes);
  void MakeRoom(const Now& now);
  void QueueDeadline(const ConnectionPtr& connection);
  void CheckDeadlines(const Now& now);

  // ---- Signals (server_signals.cc) ----
  void WaitForSignal();
  static void EndAtNextSignal();
  void WaitForDrainSignal();
  void LogDrain();
  void WaitForHangup();
  void BeginStop(const Now& now);
  bool stop_complete(const Now& now) const;

  const ServerOptions options_;
  const ConnectionTimeouts timeouts_;
  engine::Engine* const engine_;
  const Clock* const clock_;

  boost::asio::io_context io_{1};
  boost::asio::posix::stream_descriptor stop_event_;
  boost::asio::signal_set drain_signal_;
  boost::asio::signal_set hangups_;
  WakeTimer wake_;

  // ---- Clients ----
  // Earliest first; an entry that no longer equals its connection's queued_deadline is skipped.
  using DeadlineEntry = std::pair<BootTime, std::weak_ptr<Connection>>;

  struct Later {
    bool operator()(const DeadlineEntry& a, const DeadlineEntry& b) const {
      return a.first > b.first;
    }
  };

  std::vector<std::unique_ptr<Door>> doors_;
  const Connection::Ready on_readable_;
  const Connection::Ready on_writable_;
  const Connection::Ready on_hangup_;
  std::vector<char> read_buffer_;
  std::unordered_map<Connection*, ConnectionPtr> connections_;
  std::vector<ConnectionPtr> touched_;
  std::deque<ConnectionPtr> greeting_;  // in a handshake, and can be read
  std::priority_queue<DeadlineEntry, std::vector<DeadlineEntry>, Later> deadlines_;
  std::deque<LeaseToken> given_back_;  // by connections that have gone
  OnceAMinute refusal_told_;

  // ---- What they hold ----
  size_t held_bytes_ = 0;                // by all clients
  size_t freed_bytes_ = 0;               // by clients, since memory was last given back
  size_t freed_at_look_ = 0;             // freed_bytes_ at the last look
  std::optional<BootTime> memory_look_;  // the next look; none: too little was freed
  bool giving_back_ = false;             // memory, on memory_thread_

  // ---- Requests and answers ----
  boost::unordered_flat_map<engine::RequestId, Pending> pending_;
  engine::RequestId next_request_ = 1;
  SlowestCommand slowest_;
  bool unsent_ = false;  // answers were delivered to sessions since the last send
  OnceAMinute damage_told_;

  // ---- The turn ----
  bool turn_again_ = false;                // there is work left that no event will wake us for
  std::optional<BootMicros> wake_asked_;   // the wake-up time that the last turn asked for
  std::optional<BootMicros> due_awaited_;  // the engine's next event, if a request waits for it
  Millis last_turn_{0};                    // how long it took
  BootTime heartbeat_due_;

  // ---- Signals ----
  bool stop_wanted_ = false;
  bool stopping_ = false;
  BootTime stop_deadline_;
  bool drain_logged_ = false;
  bool reload_wanted_ = false;
  bool reload_running_ = false;
  ServerOptions::ApplyReload apply_reload_;  // set once the files of a reload have been read

  // ---- Commits ----
  bool in_flight_ = false;
  std::chrono::steady_clock::time_point submitted_;
  BootTime submitted_boot_;
  std::optional<CommitResult> commit_result_;
  std::optional<std::chrono::steady_clock::time_point> durable_at_;  // of a core-thread commit
  CommitWatch commit_watch_;           // of commits on the committer's thread
  std::optional<Millis> commit_look_;  // the age of the commit in flight at which to look again
  uint32_t clients_ = 0;               // served since the last batch was sealed
  bool pipelined_ = false;             // one of them does not wait for its answers
  uint32_t small_batches_ = 0;         // in a row, up to and including the last batch
  Micros last_commit_{0};              // how long it took
  Millis commit_here_{0};              // how long the core thread waited for the disk this turn

  ServerFigures figures_;

  // ---- Outside the turn ----
  // The client that waits for the admin command under way; it may have gone.
  struct AdminClient {
    std::weak_ptr<Connection> connection;
    uint64_t tag = 0;
  };

  std::optional<AdminClient> admin_client_;
  std::atomic<bool> stop_admin_ = false;

  // Declared last: their threads must end before the members that they post to are destroyed.
  Committer committer_;
  SideThread admin_thread_;
  SideThread reload_thread_;
  SideThread memory_thread_;
};

}  // namespace delayd
