// tests/unit/daemon/server_fixture.h — a server on a Unix socket, whose engine and store do as the
// test says.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "daemon/http/http_session.h"
#include "daemon/server.h"
#include "storage/memory_job_store.h"
#include "tests/unit/daemon/fake_engine.h"
#include "tests/unit/daemon/socket_client.h"

namespace delayd {

inline const std::string kEnqueue =
    "POST /v1/jobs HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
    "Content-Length: 13\r\n\r\n{\"queue\":\"q\"}";
inline const std::string kStats = "GET /v1/stats HTTP/1.1\r\nHost: d\r\n\r\n";
inline const std::string kVerify =
    "POST /v1/admin/verify HTTP/1.1\r\nHost: d\r\nContent-Length: 0\r\n\r\n";
inline const std::string kLease =
    "POST /v1/queues/q/lease HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\n"
    "Content-Length: 14\r\n\r\n{\"wait\":\"30s\"}";

// Commits wait until the test lets them go.
class GatedStore final : public storage::JobStore {
 public:
  Status Get(storage::Table table, std::string_view key, std::string* value) const override {
    return inner.Get(table, key, value);
  }

  Status Scan(storage::Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override {
    return inner.Scan(table, from, to, visit);
  }

  Status Commit(const storage::Batch& batch, const OnDurable& on_durable) override {
    if (gated) {
      gate.get_future().wait();
      gated = false;
    }
    writers.push_back(std::this_thread::get_id());
    const auto end = std::chrono::steady_clock::now() + takes.load();
    while (std::chrono::steady_clock::now() < end) {
    }
    return inner.Commit(batch, [&] {
      if (on_durable) {
        holding = hold_durable.load();  // before the answers: who has one knows
        on_durable();
        if (holding) {
          let_go.get_future().wait();
          hold_durable = false;
        }
      }
    });
  }

  Status Close() override { return inner.Close(); }

  storage::MemoryJobStore inner;
  std::vector<std::thread::id> writers;  // of each commit; read when the server has ended
  std::atomic<Micros> takes{Micros(0)};  // a commit, at least
  std::promise<void> gate;
  std::atomic<bool> hold_durable{false};  // a commit that tells of it does not return until let go
  std::atomic<bool> holding{false};
  std::promise<void> let_go;
  std::atomic<bool> gated{false};
};

class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    std::string pattern = testing::TempDir() + "delayd_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    path_ = directory_ + "/d.sock";
  }

  ~ServerTest() override {
    if (thread_.joinable()) {
      EXPECT_TRUE(Stop().ok());
    }
    ::unlink((path_ + ".lock").c_str());
    ::rmdir(directory_.c_str());
  }

  void Start() {
    std::promise<void> listening;
    thread_ = std::thread([this, &listening] {
      Server server(options_, &engine_, &store_, &clock_);
      StatusOr<Listener> listener = Listener::OpenUnix(path_);
      EXPECT_TRUE(listener.ok()) << listener.status().message();
      server.Listen(std::move(listener).value(), new_session_, "no room");
      listening.set_value();
      result_ = server.Run();
      figures_ = server.Figures(clock_.Sample());
    });
    listening.get_future().wait();
  }

  // By the signal, as a service manager does it. Its handler stands before anybody is served.
  Status Stop() {
    ::kill(::getpid(), SIGTERM);
    thread_.join();
    return result_;
  }

  // Once this returns, everything sent before by other clients has been executed too.
  void PassATurn() {
    SocketClient client(path_);
    client.Send(kStats);
    client.ReadUntil("commit_sequence");
  }

  // An enqueue of `late`, once, while that of another client is executed.
  void SendWhileAnotherIsServed(std::atomic<SocketClient*>* late,
                                std::string_view request = kEnqueue) {
    engine_.on_execute = [this, late, request] {
      if (std::holds_alternative<engine::Enqueue>(engine_.asked.back().command)) {
        if (SocketClient* client = late->exchange(nullptr)) {
          client->Send(request);
        }
      }
    };
  }

  ServerOptions options_;
  const http::ReaderOptions reader_options_;
  const http::Router router_{http::RouterOptions{}};
  Server::SessionFactory new_session_ = [this] {
    return std::make_unique<http::HttpSession>(reader_options_, router_);
  };
  FakeEngine engine_;
  GatedStore store_;
  const SystemClock clock_;
  std::string directory_;
  std::string path_;
  std::thread thread_;
  Status result_;
  std::optional<ServerFigures> figures_;  // when it had ended
};

}  // namespace delayd
