// cli/api.h — the daemon's API as typed calls.
//
// Errors:  a problem that the daemon answered comes back as its Status; the client's own errors
// pass through (protocol/client.h).
// Threads: one at a time, like its client.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/job.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/daemon_clock.h"
#include "protocol/bulk_json.h"
#include "protocol/client.h"
#include "protocol/job_json.h"
#include "protocol/stats_json.h"
#include "protocol/store_json.h"

namespace delayd::cli {

struct ListQuery {
  protocol::JobFilterText filter;
  bool with_payload = false;
  uint64_t limit = 0;
  std::string cursor;
};

struct ForecastQuery {
  std::optional<std::string> queue;
  WallTime from;
  WallTime to;
  Millis step{0};
};

class Api {
 public:
  // `clock` learns the daemon's time from the answers; may be null.
  Api(std::unique_ptr<protocol::Client> client,
      Millis timeout,
      std::shared_ptr<DaemonClock> clock = nullptr)
      : client_(std::move(client)), timeout_(timeout), clock_(std::move(clock)) {}

  StatusOr<protocol::EnqueuedJob> Enqueue(const JobSpec& spec);
  // One job per line; all are enqueued or none. One answer per line.
  StatusOr<std::vector<protocol::EnqueuedJob>> EnqueueLines(std::string_view ndjson, size_t lines);

  // From now on, Cancel and Reschedule succeed only while the job has this etag.
  void UseIfMatch(const std::optional<std::string>& etag) {
    client_->UseHeader("If-Match", etag.has_value() ? '"' + *etag + '"' : std::string());
  }

  // From now on, EnqueueLines is answered with the short form of EnqueuedIdToJson.
  void UseShortAnswers() { client_->UseHeader("Prefer", "return=minimal"); }

  // From now on a call ends as at its timeout once `fd` is readable and no more of the answer has
  // come for `grace`; -1: never.
  void GiveUpWhen(int fd, Millis grace = Millis(0)) { client_->GiveUpWhen(fd, grace); }

  // Gives up after `at_most`, if that is shorter than the timeout.
  StatusOr<JobView> Show(const JobRef& job, Millis at_most = Millis::max());
  StatusOr<JobView> Cancel(const JobRef& job);
  StatusOr<JobView> Reschedule(const JobRef& job, const protocol::RescheduleRequest& request);
  StatusOr<JobView> Kick(const JobRef& job);
  StatusOr<uint64_t> KickQueue(std::string_view queue, uint32_t count);
  StatusOr<protocol::QueueCounts> Pause(std::string_view queue,
                                        const protocol::PauseRequest& request);
  StatusOr<protocol::QueueCounts> Resume(std::string_view queue);
  StatusOr<protocol::JobPage> List(const ListQuery& query);
  // The first `limit` jobs, fetched page by page, and the cursor after them.
  StatusOr<protocol::JobPage> ListUpTo(const protocol::JobFilterText& filter, uint64_t limit);

  StatusOr<std::vector<JobView>> Lease(std::string_view queue,
                                       const protocol::LeaseRequest& request);
  // `action` is ack, nack, bury or extend. `at_most` as in Show.
  StatusOr<JobView> ChangeLease(std::string_view token,
                                std::string_view action,
                                const protocol::LeaseChange& change,
                                Millis at_most = Millis::max());

  // One step of a bulk change; `action` is cancel, reschedule or kick.
  StatusOr<protocol::ChangedMany> ChangeMany(std::string_view action,
                                             const protocol::ChangeManyRequest& request);
  StatusOr<std::vector<protocol::ForecastStep>> Forecast(const ForecastQuery& query);

  StatusOr<std::vector<protocol::QueueCounts>> Queues();
  StatusOr<protocol::QueueCounts> Queue(std::string_view name);
  StatusOr<std::vector<protocol::Stat>> Stats();
  // The daemon's time; to the second only if the daemon does not tell it in its figures.
  StatusOr<WallTime> Time();
  // Replaces durations from now by fixed times, for a caller that makes several requests.
  Status FixTimes(std::initializer_list<std::optional<std::string>*> texts);
  // The whole page, for cli/metrics_page.h.
  StatusOr<std::string> Metrics();
  StatusOr<std::vector<protocol::Stat>> AcceptClock();
  StatusOr<std::vector<protocol::Stat>> Drain(bool on);
  StatusOr<protocol::VerifyResult> Verify();
  StatusOr<protocol::BackupResult> BackUp(const protocol::BackupRequest& request);
  // OK also when the daemon reports that it is not well.
  StatusOr<protocol::Health> Health();
  StatusOr<protocol::Health> Readiness();

 private:
  StatusOr<protocol::Health> HealthAt(std::string_view target);
  template <typename T>
  using Parser = StatusOr<T> (*)(std::string_view json);

  // The daemon's answer, read by `parse`.
  template <typename T>
  StatusOr<T> Ask(Parser<T> parse,
                  std::string_view method,
                  std::string_view target,
                  std::string_view json = {},
                  std::optional<Millis> timeout = std::nullopt);
  // The body of a successful answer; any other answer is an error.
  StatusOr<std::string> Call(std::string_view method,
                             std::string_view target,
                             std::string_view content_type,
                             std::string_view body,
                             std::optional<Millis> timeout = std::nullopt);
  StatusOr<protocol::HttpResponse> Exchange(std::string_view method,
                                            std::string_view target,
                                            std::string_view content_type = {},
                                            std::string_view body = {},
                                            std::optional<Millis> timeout = std::nullopt);

  std::unique_ptr<protocol::Client> client_;
  Millis timeout_;
  std::shared_ptr<DaemonClock> clock_;
  std::optional<WallTime> date_;  // the date of the last answer
};

}  // namespace delayd::cli
