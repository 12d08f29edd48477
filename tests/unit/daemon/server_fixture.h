// tests/unit/daemon/server_fixture.h — a server on a Unix socket, whose engine, store and sessions
// do as the test says.
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "daemon/http/http_reader.h"
#include "daemon/http/router.h"
#include "daemon/server.h"
#include "daemon/session.h"
#include "storage/memory_job_store.h"
#include "tests/support/plain_report.h"
#include "tests/support/socket_client.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/daemon/fake_engine.h"

namespace delayd {

using test::SocketClient;

inline const std::string kEnqueue =
    "POST /v1/jobs HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
    "Content-Length: 13\r\n\r\n{\"queue\":\"q\"}";
inline const std::string kStats = "GET /v1/stats HTTP/1.1\r\nHost: d\r\n\r\n";
inline const std::string kVerify =
    "POST /v1/admin/verify HTTP/1.1\r\nHost: d\r\nContent-Length: 0\r\n\r\n";
inline const std::string kLease =
    "POST /v1/queues/q/lease HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
    "Content-Length: 14\r\n\r\n{\"wait\":\"30s\"}";

// Keeps the processor for so long, as slow work does.
void Busy(Micros time);

// How often the text has the part.
size_t Count(std::string_view text, std::string_view part);

// Asks for nothing and never ends by itself; tests derive from it what they need.
class PlainSession : public Session {
 public:
  void Receive(std::string_view /*bytes*/) override {}

  std::optional<SessionRequest> Next(const Now& /*now*/) override { return std::nullopt; }

  void Answer(uint64_t /*tag*/, const engine::Reply& /*reply*/) override {}

  void Stop() override { stopped_ = true; }

  void Refuse(const Status& /*why*/) override {}

  bool wants_input() const override { return true; }

  std::string_view output() const override { return output_; }

  void Sent(size_t bytes) override { output_.erase(0, bytes); }

  bool finished() const override { return stopped_; }

  Phase phase() const override { return Phase::kWorking; }

 protected:
  bool stopped_ = false;
  std::string output_;
};

// Commits wait until the test lets them go.
class GatedStore final : public storage::JobStore {
 public:
  Status Get(storage::Table table, std::string_view key, std::string* value) const override;
  Status Scan(storage::Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override;
  Status Commit(const storage::Batch& batch, const OnDurable& on_durable) override;
  Status Check() override;
  Status Close() override;

  storage::MemoryJobStore inner;
  std::atomic<bool> ended{false};        // without a commit
  std::vector<std::thread::id> writers;  // of each commit; read when the server has ended
  std::atomic<std::thread::id> last_writer;
  std::atomic<Micros> takes{Micros(0)};  // a commit, at least
  std::promise<void> gate;
  std::atomic<bool> hold_durable{false};  // a commit that tells of it does not return until let go
  std::atomic<bool> holding{false};
  std::promise<void> let_go;
  std::atomic<bool> gated{false};
};

// Far ahead of the machine's, so that the timer never wakes the server: clients do.
class HandClock final : public Clock {
 public:
  [[nodiscard]] Now Sample() const override {
    const int64_t ms = ms_.load();
    return {.wall = WallTime(Millis(ms)), .boot = BootTime(Millis(ms))};
  }

  void Advance(int64_t ms) { ms_ += ms; }

 private:
  std::atomic<int64_t> ms_{1'000'000'000'000};
};

class ServerTest : public ::testing::Test {
 protected:
  ServerTest();

  void TearDown() override;

  void Start();

  // By the signal, as a service manager does it. Its handler stands before anybody is served.
  Status Stop();

  // Once this returns, everything sent before by other clients has been executed too.
  void PassATurn();

  // A client's socket that the server has tried to accept and could not, for want of descriptors.
  // The server is on the hand clock: it warns of nothing else.
  UniqueFd ConnectInVain() const;

  // An enqueue of `late`, once, while that of another client is executed.
  void SendWhileAnotherIsServed(std::atomic<SocketClient*>* late,
                                std::string_view request = kEnqueue);

  // The second client enqueues while the first one's enqueue is executed; returns when both are
  // answered. They share a commit, unless the server was not run for a while in between.
  void EnqueueTogether(SocketClient* first, SocketClient* second);

  ServerOptions options_;
  const http::ReaderOptions reader_options_;
  const http::Router router_{http::RouterOptions{.service = &test::kPlainReport}};
  Server::SessionFactory new_session_;
  FakeEngine engine_;
  GatedStore store_;
  const SystemClock clock_;
  HandClock hand_clock_;
  const Clock* server_clock_ = &clock_;
  const test::TempDir directory_;
  const std::string path_ = directory_.Sub("d.sock");
  std::thread thread_;
  Status result_;
  std::optional<ServerFigures> figures_;  // when it had ended
  std::atomic<SocketClient*> late_ = nullptr;
  size_t rounds_ = 0;  // of EnqueueTogether
};

}  // namespace delayd
