// tests/storm/api_client.h — a client of a storm that speaks HTTP (tests/storm/client.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/client.h"
#include "tests/storm/client.h"

namespace delayd::storm {

class ApiClient final : public Client {
 public:
  // `options.server`: as delayctl's --server.
  ApiClient(ClientOptions options, std::function<bool()> stopping);

 private:
  void Connect() override {}

  void DrawTimes(JobSpec* spec) override;
  void Enqueue(const std::vector<JobSpec>& specs) override;
  void Lease() override;
  void EndOne() override;
  void DoSomething() override;
  void LeaseOp(const std::string& op, const Held& held, std::optional<Millis> time);
  void UseOldLease();
  void Cancel();
  void Reschedule();
  void Kick();
  void Show();
  std::string TargetOf(const Mine& mine);

  // Sends, and writes down the end of `request` unless it is an answer with jobs in it.
  std::optional<protocol::HttpResponse> Call(uint64_t request,
                                             std::string_view method,
                                             const std::string& target,
                                             const std::string& content_type,
                                             const std::string& body);
  // The same, and writes down an answer without jobs too.
  void Do(uint64_t request,
          std::string_view method,
          const std::string& target,
          const std::string& content_type,
          const std::string& body);
  void WaitForDaemon();

  std::unique_ptr<protocol::Client> client_;
};

}  // namespace delayd::storm
