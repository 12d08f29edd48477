// A worker that keeps its own record, outside of anything that the daemon's death can touch.
//
//   order_worker SERVER RECORD
//
// Leases from the queue "orders", writes one line for each job before and after its ack, and goes
// on over restarts of the daemon until SIGTERM:
//   received ID KEY TOKEN ATTEMPT BOOT_MS FINGERPRINT
//   acked|refused|unknown ID KEY TOKEN
#include <poll.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/coding.h"
#include "protocol/client.h"
#include "protocol/job_json.h"

namespace {

using delayd::JobView;
using delayd::Millis;

// A job whose hand-out is not waited for comes again only when its lease is over, an hour later.
constexpr Millis kPatience{60'000};

volatile std::sig_atomic_t stopping = 0;

void OnSignal(int /*signal*/) {
  stopping = 1;
}

void Work(delayd::protocol::Client* client, std::FILE* record) {
  const delayd::SystemClock clock;
  const std::string json = "application/json";
  auto response = client->Call("POST",
                               "/v1/queues/orders/lease",
                               json,
                               R"({"count":50,"wait":"1s","lease":"1h"})",
                               kPatience);
  if (!response.ok() || response->status != 200) {
    // The daemon is away: a breath, and again.
    ::poll(nullptr, 0, 20);
    return;
  }
  const auto page = delayd::protocol::ParseJobPage(response->body);
  if (!page.ok()) {
    std::fprintf(stderr, "order_worker: %s\n", page.status().message().c_str());
    std::exit(1);
  }
  for (const JobView& job : page->jobs) {
    const std::string token = delayd::FormatLeaseToken(*job.lease_token);
    std::fprintf(record,
                 "received %llu %s %s %u %lld %llu\n",
                 static_cast<unsigned long long>(ToInt(job.id)),
                 job.key.c_str(),
                 token.c_str(),
                 job.attempt,
                 static_cast<long long>(delayd::ToMillis(clock.Sample().boot)),
                 static_cast<unsigned long long>(delayd::Fingerprint(*job.payload)));
    std::fflush(record);
    const auto acked = client->Call("POST", "/v1/leases/" + token + "/ack", "", "", kPatience);
    const char* outcome = !acked.ok() ? "unknown" : acked->status == 200 ? "acked" : "refused";
    std::fprintf(record,
                 "%s %llu %s %s\n",
                 outcome,
                 static_cast<unsigned long long>(ToInt(job.id)),
                 job.key.c_str(),
                 token.c_str());
    std::fflush(record);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: order_worker SERVER RECORD\n");
    return 2;
  }
  std::signal(SIGTERM, OnSignal);
  auto client = delayd::protocol::Client::Create(argv[1]);
  std::FILE* record = std::fopen(argv[2], "ae");
  if (!client.ok() || record == nullptr) {
    std::fprintf(stderr, "order_worker: cannot use %s or %s\n", argv[1], argv[2]);
    return 2;
  }
  while (stopping == 0) {
    Work(client->get(), record);
  }
  std::fclose(record);
  return 0;
}
