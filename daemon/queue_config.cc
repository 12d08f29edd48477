// The settings of queues: `defaults:` and, for single queues, `queues: { NAME: ... }`.
#include <array>
#include <cstdint>
#include <utility>

#include "base/job.h"
#include "daemon/config.h"
#include "daemon/config_values.h"
#include "protocol/duration.h"

namespace delayd {

namespace {

using engine::QueueSettings;

constexpr Millis kMillisecond{1};
constexpr Millis kSecond{1000};
constexpr Millis kDay{std::chrono::hours(24)};
constexpr uint32_t kCapMax = 1'000'000;
constexpr uint32_t kJobsMax = 1'000'000'000;

Status SetNumber(std::string_view text, double min, double max, double* number) {
  DELAYD_ASSIGN_OR_RETURN(*number, ParseFactor(text, min, max));
  return OkStatus();
}

// "100/s", "5/m", "1/10m"; "0": none.
Status SetRate(std::string_view text, engine::RateCap* rate) {
  if (text == "0") {
    rate->count = 0;
    return OkStatus();
  }
  const size_t slash = text.find('/');
  const std::string_view unit = slash == std::string_view::npos ? "" : text.substr(slash + 1);
  const bool has_number = !unit.empty() && unit.front() >= '0' && unit.front() <= '9';
  const StatusOr<Millis> per =
      protocol::ParseDuration(has_number ? std::string(unit) : "1" + std::string(unit));
  const StatusOr<uint64_t> count = ParseCount(text.substr(0, slash), 1, kCapMax);
  if (unit.empty() || !per.ok() || !count.ok() || *per < kMillisecond || *per > kDay) {
    return InvalidArgument(
        "expected a number of jobs and a time, such as 100/s, 5/m or 1/10m, or " +
        std::string("0 for no cap; found '") + std::string(text) + "'");
  }
  rate->count = static_cast<uint32_t>(*count);
  rate->per = *per;
  return OkStatus();
}

constexpr std::array kQueueKeys = std::to_array<QueueKey>({
    {"defaults.lease",
     "DURATION",
     "lease of a job that does not set its own",
     [](std::string_view text, QueueSettings* s) {
       return SetDuration(text, kSecond, Millis(limits::kLeaseMsMax), &s->lease);
     }},
    {"defaults.max_attempts",
     "COUNT",
     "hand-outs before a job is dead; 0: no limit",
     [](std::string_view text, QueueSettings* s) {
       return SetCount(text, 0, UINT32_MAX, &s->max_attempts);
     }},
    {"defaults.key_retention",
     "DURATION",
     "how long the key of a finished job still answers with that job",
     [](std::string_view text, QueueSettings* s) {
       return SetDuration(text, Millis(0), 366 * kDay, &s->key_retention);
     }},
    {"defaults.history_retention",
     "DURATION",
     "how long a finished job is kept with its payload and history",
     [](std::string_view text, QueueSettings* s) {
       return SetDuration(text, Millis(0), 366 * kDay, &s->history_retention);
     }},
    {"defaults.backoff.initial",
     "DURATION",
     "wait before the second attempt",
     [](std::string_view text, QueueSettings* s) {
       return SetDuration(text, kMillisecond, kDay, &s->backoff.initial);
     }},
    {"defaults.backoff.factor",
     "NUMBER",
     "each further wait is this many times longer",
     [](std::string_view text, QueueSettings* s) {
       return SetNumber(text, 1, 100, &s->backoff.factor);
     }},
    {"defaults.backoff.max",
     "DURATION",
     "longest wait between two attempts",
     [](std::string_view text, QueueSettings* s) {
       return SetDuration(text, kMillisecond, 366 * kDay, &s->backoff.max);
     }},
    {"defaults.backoff.jitter",
     "NUMBER",
     "each wait is shorter by up to this fraction of it, 0 to 1",
     [](std::string_view text, QueueSettings* s) {
       return SetNumber(text, 0, 1, &s->backoff.jitter);
     }},
    {"defaults.concurrency",
     "COUNT",
     "jobs of a queue leased at a time; 0: no cap",
     [](std::string_view text, QueueSettings* s) {
       return SetCount(text, 0, kCapMax, &s->concurrency);
     }},
    {"defaults.rate",
     "RATE",
     "rate at which a queue hands jobs out, such as 100/s; 0: no cap",
     [](std::string_view text, QueueSettings* s) { return SetRate(text, &s->rate); }},
    {"defaults.burst",
     "COUNT",
     "hand-outs at once under a rate cap",
     [](std::string_view text, QueueSettings* s) {
       return SetCount(text, 1, kCapMax, &s->rate.burst);
     }},
    {"defaults.max_jobs",
     "COUNT",
     "jobs that a queue may hold, dead ones too; 0: no quota",
     [](std::string_view text, QueueSettings* s) {
       return SetCount(text, 0, kJobsMax, &s->max_jobs);
     }},
});

}  // namespace

std::span<const QueueKey> QueueKeys() {
  return kQueueKeys;
}

const QueueKey* FindQueueKey(std::string_view name) {
  for (const QueueKey& key : kQueueKeys) {
    if (key.name() == name) {
      return &key;
    }
  }
  return nullptr;
}

Status CheckQueueSettings(const QueueSettings& settings) {
  if (settings.backoff.initial > settings.backoff.max) {
    return InvalidArgument("backoff.initial: must not exceed backoff.max, which is " +
                           protocol::FormatDuration(settings.backoff.max) + "; it is " +
                           protocol::FormatDuration(settings.backoff.initial));
  }
  return OkStatus();
}

void ConfigReader::SetOfQueue(const std::string& queue,
                              const QueueKey& key,
                              std::string_view text,
                              std::string where) {
  overrides_.push_back({queue, &key, std::string(text), std::move(where)});
}

// Runs after all sources are read: the defaults may come from a source that is read after the file.
void ConfigReader::FinishQueues() {
  if (const Status status = CheckQueueSettings(config_.defaults); !status.ok()) {
    Fail(Where("defaults.backoff.initial", "defaults.backoff.max"), "defaults." + status.message());
  }
  for (const Override& one : overrides_) {
    QueueSettings& settings = config_.queues.try_emplace(one.queue, config_.defaults).first->second;
    const std::string name = "queues." + one.queue + ".";
    if (const Status status = one.key->set(one.text, &settings); !status.ok()) {
      Fail(one.where, name + std::string(one.key->name()) + ": " + status.message());
    }
  }
  for (const auto& [queue, settings] : config_.queues) {
    const Status status = CheckQueueSettings(settings);
    const std::string where = status.ok() ? "" : WhereBackoff(queue);
    if (!where.empty()) {
      Fail(where, "queues." + queue + "." + status.message());
    }
  }
}

std::string ConfigReader::WhereBackoff(const std::string& queue) const {
  for (const std::string_view name : {"backoff.initial", "backoff.max"}) {
    for (const Override& one : overrides_) {
      if (one.queue == queue && one.key->name() == name) {
        return one.where;
      }
    }
  }
  return {};
}

}  // namespace delayd
