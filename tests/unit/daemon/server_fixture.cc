#include "tests/unit/daemon/server_fixture.h"

#include <unistd.h>

#include <csignal>
#include <memory>
#include <utility>
#include <variant>

#include "daemon/http/http_session.h"
#include "daemon/log.h"
#include "tests/support/unix_address.h"

#include <sys/resource.h>
#include <sys/socket.h>

namespace delayd {

void Busy(Micros time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

size_t Count(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

Status GatedStore::Get(storage::Table table, std::string_view key, std::string* value) const {
  return inner.Get(table, key, value);
}

Status GatedStore::Scan(storage::Table table,
                        std::string_view from,
                        std::string_view to,
                        const Visitor& visit) const {
  return inner.Scan(table, from, to, visit);
}

Status GatedStore::Commit(const storage::Batch& batch, const OnDurable& on_durable) {
  if (gated) {
    gate.get_future().wait();
    gated = false;
  }
  writers.push_back(std::this_thread::get_id());
  last_writer = std::this_thread::get_id();
  Busy(takes);
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

Status GatedStore::Check() {
  return ended ? FailedPrecondition("not what was opened", "data_dir_replaced") : OkStatus();
}

Status GatedStore::Close() {
  return inner.Close();
}

ServerTest::ServerTest()
    : new_session_(
          [this] { return std::make_unique<http::HttpSession>(reader_options_, router_); }) {
  options_.slow_turn = std::chrono::hours(1);   // a busy machine's are no warnings to be counted
  options_.stop_grace = std::chrono::hours(1);  // however long what a stop waits for takes there
}

void ServerTest::TearDown() {
  if (thread_.joinable()) {
    EXPECT_TRUE(Stop().ok());
  }
}

void ServerTest::Start() {
  std::promise<void> listening;
  thread_ = std::thread([this, &listening] {
    Server server(options_, &engine_, &store_, server_clock_);
    StatusOr<Listener> listener = Listener::OpenUnix(path_);
    EXPECT_TRUE(listener.ok()) << listener.status().message();
    server.Listen(std::move(listener).value(), new_session_, "no room");
    listening.set_value();
    result_ = server.Run();
    figures_ = server.Figures(server_clock_->Sample());
  });
  listening.get_future().wait();
}

Status ServerTest::Stop() {
  ::kill(::getpid(), SIGTERM);
  thread_.join();
  return result_;
}

void ServerTest::PassATurn() {
  SocketClient client(path_);
  client.Send(kStats);
  client.ReadUntil("commit_sequence");
}

UniqueFd ServerTest::ConnectInVain() const {
  EXPECT_EQ(server_clock_, &hand_clock_);
  UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = test::UnixAddress(path_);
  const auto warnings = [] { return log::Counts()[static_cast<size_t>(log::Level::kWarn)]; };
  const uint64_t before = warnings();
  rlimit limit{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
  while (warnings() == before) {
    std::this_thread::yield();
  }
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return client;
}

void ServerTest::SendWhileAnotherIsServed(std::atomic<SocketClient*>* late,
                                          std::string_view request) {
  engine_.on_execute = [this, late, request] {
    if (std::holds_alternative<engine::Enqueue>(engine_.asked.back().command)) {
      if (SocketClient* client = late->exchange(nullptr)) {
        client->Send(request);
      }
    }
  };
}

void ServerTest::EnqueueTogether(SocketClient* first, SocketClient* second) {
  ++rounds_;
  late_ = second;
  first->Send(kEnqueue);
  for (SocketClient* client : {first, second}) {
    EXPECT_EQ(Count(client->ReadUntil("201 Created", rounds_), "201 Created"), rounds_);
  }
}

}  // namespace delayd
