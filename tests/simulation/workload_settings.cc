// What an operator writes into the configuration: settings of queues, caps, quotas, retentions.
#include "tests/simulation/workload.h"

namespace delayd::simulation {

using std::chrono::hours;

engine::QueueSettings Workload::SettingsOfOne() {
  static constexpr int64_t kRetentions[] = {0, 1, 5'000, 3'600'000, 86'400'000, 2'592'000'000};
  engine::QueueSettings settings = habits_.defaults;
  settings.lease = Millis(choices_.Magnitude(16));
  settings.max_attempts = static_cast<uint32_t>(choices_.Below(5));
  settings.backoff = {.initial = Millis(choices_.Magnitude(12)),
                      .factor = 1.0 + static_cast<double>(choices_.Below(3)),
                      .max = Millis(choices_.Magnitude(20)),
                      .jitter = static_cast<double>(choices_.Below(3)) / 2};
  if (choices_.OneIn(8)) {  // the widest that a file may say
    settings.backoff = {.initial = hours(24), .factor = 100, .max = hours(24 * 366), .jitter = 1};
  }
  settings.max_jobs = choices_.OneIn(habits_.narrow_quotas ? 2 : 4)
                          ? static_cast<uint32_t>(1 + choices_.Below(20))
                          : 0;
  settings.concurrency = choices_.OneIn(2) ? static_cast<uint32_t>(choices_.Below(4)) : 0;
  if (choices_.OneIn(3)) {
    settings.rate = {.count = static_cast<uint32_t>(1 + choices_.Below(10)),
                     .per = Millis(choices_.Magnitude(14)),
                     .burst = static_cast<uint32_t>(1 + choices_.Below(4))};
  }
  if (habits_.retentions_change) {
    settings.key_retention = Millis(kRetentions[choices_.Below(6)]);
    settings.history_retention = Millis(choices_.OneIn(2) ? kRetentions[choices_.Below(6)] : 0);
  }
  return settings;
}

engine::Configure Workload::Settings() {
  engine::Configure command{.defaults = habits_.defaults};
  if (habits_.retentions_change && choices_.OneIn(2)) {
    command.defaults = SettingsOfOne();
  }
  for (const std::string& name : queues()) {
    if (choices_.OneIn(2)) {
      command.queues[name] = SettingsOfOne();
    }
  }
  return command;
}

}  // namespace delayd::simulation
