#include "tests/unit/daemon/beanstalk/simulated_server.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "base/check.h"

namespace delayd::beanstalk {
namespace {

constexpr int kAnswersPerTurn = 3;  // so that small inputs meet the bound

}  // namespace

SimulatedServer::Client::Client(Hub* hub) : session(hub) {}

SimulatedServer::Client::~Client() = default;

SimulatedServer::SimulatedServer(size_t job_bytes_max)
    : clock_({.wall = WallFromMillis(1'800'000'000'000), .boot = BootFromMillis(1'000'000)}),
      hub_({.job_bytes_max = job_bytes_max, .version = "1.2.3", .started = clock_.Sample().boot}) {
  auto loaded = engine::Engine::Load({.boot_id = 7}, store_, clock_.Sample());
  DELAYD_CHECK(loaded.ok());
  engine_ = std::move(loaded).value();
  Settle();
}

SimulatedServer::~SimulatedServer() = default;

SimulatedServer::Client* SimulatedServer::Connect() {
  clients_.push_back(std::make_unique<Client>(&hub_));
  return clients_.back().get();
}

std::string SimulatedServer::Send(Client* client, std::string_view bytes) {
  Receive(client, bytes);
  Settle();
  return Take(client);
}

void SimulatedServer::Receive(Client* client, std::string_view bytes) {
  DELAYD_CHECK(!client->closed);
  if (client->session.wants_input()) {
    client->session.Receive(bytes);
  }
}

std::string SimulatedServer::HalfClose(Client* client) {
  client->input_ended = true;
  last_words_.clear();
  Settle();
  return last_words_;
}

void SimulatedServer::Close(Client* client) {
  client->closed = true;
  Settle();
}

void SimulatedServer::Sleep(Millis time) {
  const Now end = {clock_.Sample().wall + time, clock_.Sample().boot + time};
  for (;;) {
    Settle();
    const Now now = clock_.Sample();
    const auto wait = engine_->UntilNextEvent(now);
    if (!wait || now.exact_boot() + *wait > end.boot) {
      clock_.Advance(end.boot - now.boot);
      break;
    }
    clock_.Advance(std::chrono::ceil<Millis>(std::max(*wait, Micros(1))));
  }
  Settle();
}

void SimulatedServer::Settle() {
  while (Turn()) {
  }
}

engine::Reply SimulatedServer::Ask(engine::Command command) {
  const engine::RequestId id = next_request_++;
  engine_->Execute(id, std::move(command), clock_.Sample());
  asked_ = id;
  Settle();
  return std::exchange(answer_, engine::Reply());
}

bool SimulatedServer::Turn() {
  bool more = false;
  const Now now = clock_.Sample();
  for (const auto& client : clients_) {
    more = Serve(client.get(), now) || more;
  }
  more = engine_->Advance(now) || more;
  DELAYD_CHECK(engine_->fatal().ok());
  if (!hold_commits_) {
    while (const auto sealed = engine_->Seal(now)) {
      DELAYD_CHECK(store_.Commit(*sealed->batch).ok());
      engine_->Committed(sealed->sequence);
    }
  }
  DeliverAll();
  for (const auto& client : clients_) {
    more = Finish(client.get(), now) || more;
  }
  std::erase_if(clients_, [](const auto& client) { return client->closed; });
  return more;
}

bool SimulatedServer::Serve(Client* client, const Now& now) {
  if (client->closed) {
    Leave(client, now);
    return false;
  }
  bool any = false;
  for (int taken = 0;; ++taken) {
    std::optional<SessionRequest> request = client->session.Next(now);
    if (!request && taken < kAnswersPerTurn && client->session.held_up()) {
      DeliverAll();
      request = client->session.Next(now);
    }
    if (!request) {
      break;
    }
    any = true;
    const engine::RequestId id = next_request_++;
    requests_[id] = {client, *request};
    client->pending.push_back(id);
    engine_->Execute(id, std::move(request->command), now);
  }
  if (client->input_ended && !client->session.has_more()) {
    client->session.InputEnded();
  }
  return any;
}

void SimulatedServer::DeliverAll() {
  for (const engine::Reply& reply : engine_->TakeReplies()) {
    Deliver(reply);
  }
}

void SimulatedServer::Deliver(const engine::Reply& reply) {
  if (reply.request == asked_) {
    answer_ = reply;
    return;
  }
  const auto found = requests_.find(reply.request);
  if (found != requests_.end()) {
    auto [client, request] = std::move(found->second);
    requests_.erase(found);
    std::erase(client->pending, reply.request);
    client->session.Answer(request.tag, reply);
  }
}

bool SimulatedServer::Finish(Client* client, const Now& now) {
  BeanstalkSession& session = client->session;
  bool more = false;
  if (client->input_ended && !session.has_more()) {
    for (const engine::RequestId id : client->pending) {
      const engine::Command& command = requests_.at(id).second.command;
      if (std::holds_alternative<engine::Lease>(command)) {
        engine_->Execute(next_request_++, engine::EndWait{id}, now);
        more = true;
      }
    }
  }
  client->output += session.output();
  session.Sent(session.output().size());
  if (session.finished() || client->closed) {
    Leave(client, now);
    for (const engine::RequestId id : client->pending) {
      requests_.erase(id);
    }
    client->pending.clear();
    client->closed = client->closed || client->input_ended;
    last_words_ += client->output;
  }
  return !client->closed && (more || session.has_more());
}

void SimulatedServer::GiveUpLeases(Client* client, const Now& now) {
  const std::vector<engine::RequestId> pending = client->pending;
  for (const engine::RequestId id : pending) {
    const auto found = requests_.find(id);
    const engine::Command& command = found->second.second.command;
    if (!std::holds_alternative<engine::Lease>(command) &&
        !std::holds_alternative<engine::LeaseJob>(command)) {
      continue;
    }
    engine_->Execute(next_request_++, engine::Abandon{id}, now);
    engine::Reply none;
    none.request = id;
    if (std::holds_alternative<engine::LeaseJob>(command)) {
      none.status = Unavailable("the daemon is being stopped; ask again when it is back");
    } else {
      none.body = engine::Leased{};
    }
    Deliver(none);
  }
}

void SimulatedServer::Leave(Client* client, const Now& now) {
  GiveUpLeases(client, now);
  for (const LeaseToken& token : client->session.Leave()) {
    engine_->Execute(next_request_++, engine::GiveBack{token}, now);
  }
}

}  // namespace delayd::beanstalk
