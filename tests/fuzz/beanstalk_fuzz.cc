// Beanstalk connections on a real engine. The first byte says how: even, the rest is one client's
// input, and how it is cut must make no difference; odd, the rest tells three clients what to send,
// when to wait, and when to go.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/unit/daemon/beanstalk/simulated_server.h"

namespace {

using namespace delayd;
using namespace delayd::beanstalk;

void Require(bool claim) {
  if (!claim) {
    std::abort();
  }
}

constexpr size_t kJobBytesMax = 64;

// What the engine has at the end: jobs never vanish but by the client's word.
std::string Talk(std::string_view input, size_t piece) {
  SimulatedServer server(kJobBytesMax);
  SimulatedServer::Client* const client = server.Connect();
  std::string output;
  for (size_t at = 0; at < input.size() && !client->session.finished(); at += piece) {
    output += server.Send(client, input.substr(at, piece));
  }
  return output;
}

// "stats" tells of the process, which is not the same twice.
bool AsksForStats(std::string_view input) {
  return input.find("stats") != std::string_view::npos;
}

void Crowd(std::string_view input) {
  constexpr size_t kClients = 3;
  SimulatedServer server(kJobBytesMax);
  SimulatedServer::Client* clients[kClients] = {};
  while (input.size() >= 2) {
    const auto what = static_cast<unsigned char>(input[0]);
    const auto size = static_cast<unsigned char>(input[1]);
    input.remove_prefix(2);
    SimulatedServer::Client*& client = clients[what % kClients];
    if (client == nullptr) {
      client = server.Connect();
    }
    switch (what / kClients % 8) {
      case 0:
        server.Sleep(Millis(size * 37));
        break;
      case 1:
        server.Close(std::exchange(client, nullptr));
        break;
      case 2:
        server.HalfClose(std::exchange(client, nullptr));
        break;
      default:
        server.Send(client, input.substr(0, size));
        input.remove_prefix(std::min<size_t>(size, input.size()));
    }
  }
  for (SimulatedServer::Client* const client : clients) {
    if (client != nullptr) {
      server.Close(client);
    }
  }
  const engine::Reply reply = server.Ask(engine::GetStats{});
  const auto& stats = *std::get<Indirect<engine::StatsView>>(reply.body);
  Require(stats.leased == 0);   // reservations end with their connection
  Require(stats.waiting == 0);  // and so do waits
  Require(server.hub().connections == 0);
  Require(server.hub().waiting == 0);
  Require(stats.scheduled + stats.ready + stats.dead + stats.acked + stats.cancelled ==
          stats.enqueued);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) {
    Crowd(input);
    return 0;
  }
  const std::string whole = Talk(input, input.size());
  if (!AsksForStats(input)) {
    Require(Talk(input, 1) == whole);
    Require(Talk(input, 7) == whole);
  }
  return 0;
}
