// tests/unit/daemon/beanstalk/simulated_server.h — beanstalk connections on a real engine, without
// sockets, threads and clocks: what daemon/server.cc does in a turn, on a store in memory.
//
// Errors:  test failures, or a failed check of the engine.
// Threads: one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "daemon/beanstalk/session.h"
#include "daemon/engine/engine.h"
#include "storage/memory_job_store.h"

namespace delayd::beanstalk {

class SimulatedServer {
 public:
  class Client {
   public:
    explicit Client(Hub* hub);
    ~Client();

    BeanstalkSession session;
    std::string output;
    std::vector<engine::RequestId> pending;
    bool input_ended = false;
    bool closed = false;
  };

  explicit SimulatedServer(size_t job_bytes_max = 65535);
  ~SimulatedServer();

  Client* Connect();

  // What the client has sent arrives and is served; gives what it has got since it was last asked.
  std::string Send(Client* client, std::string_view bytes);

  void Receive(Client* client, std::string_view bytes);

  static std::string Take(Client* client) { return std::exchange(client->output, std::string()); }

  // It sends nothing more, but reads on.
  std::string HalfClose(Client* client);

  void Close(Client* client);

  void Sleep(Millis time);

  // It is not run for so long.
  void Stall(Millis time) { clock_.Advance(time); }

  // Turns until nothing is left to do.
  void Settle();

  // Commits are held back: what rests on them is not answered.
  void HoldCommits(bool hold) { hold_commits_ = hold; }

  engine::Reply Ask(engine::Command command);

  Hub& hub() { return hub_; }

 private:
  bool Turn();
  bool Serve(Client* client, const Now& now);
  void DeliverAll();
  void Deliver(const engine::Reply& reply);
  bool Finish(Client* client, const Now& now);
  void GiveUpLeases(Client* client, const Now& now);
  void Leave(Client* client, const Now& now);

  SimulatedClock clock_;
  Hub hub_;
  storage::MemoryJobStore store_;
  std::unique_ptr<engine::Engine> engine_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::map<engine::RequestId, std::pair<Client*, SessionRequest>> requests_;
  engine::RequestId next_request_ = 1;
  engine::RequestId asked_ = 0;
  engine::Reply answer_;
  bool hold_commits_ = false;
  std::string last_words_;  // of clients that have ended
};

}  // namespace delayd::beanstalk
