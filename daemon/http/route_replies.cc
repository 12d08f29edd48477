// The other half of the router: turns the engine's replies into responses.
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "daemon/http/route_handlers.h"
#include "daemon/http/router.h"
#include "protocol/ack_json.h"
#include "protocol/bulk_json.h"
#include "protocol/cancel_json.h"
#include "protocol/duration.h"
#include "protocol/job_json.h"
#include "protocol/stats_json.h"
#include "protocol/store_json.h"

namespace delayd::http {

namespace {

std::string JobPath(JobId id) {
  return "/v1/jobs/" + std::to_string(ToInt(id));
}

Response RenderOneJob(JobView job) {
  // A leased job can be changed only by the holder of the lease, who uses the token for that.
  if (!job.lease_token.has_value()) {
    job.etag = TagOf(job);
  }
  Response response{.body = protocol::JobToJson(job)};
  response.etag = std::move(job.etag);
  return response;
}

Response RenderEnqueuedOne(const engine::Enqueued& enqueued) {
  DELAYD_CHECK(enqueued.items.size() == 1);
  const engine::Enqueued::Item& item = enqueued.items.front();
  Response response = RenderOneJob(item.job);
  response.status = item.existed ? 200 : 201;
  response.location = JobPath(item.job.id);
  return response;
}

// One line per job; 201 if at least one of them is new.
template <typename Enqueued, typename ToJson>
Response RenderEnqueuedLines(const Enqueued& enqueued, const ToJson& to_json) {
  Response response{.status = 200, .content_type = std::string(kLinesType)};
  for (const auto& item : enqueued.items) {
    response.status = item.existed ? response.status : 201;
    response.body += to_json(item);
    response.body += '\n';
  }
  return response;
}

// As in the configuration: "100/s", "5/10m"; empty without a rate.
std::string RateOf(const engine::RateCap& rate) {
  if (rate.count == 0) {
    return {};
  }
  std::string per = protocol::FormatDuration(rate.per);
  if (per.find_last_of("0123456789") == 0 && per.front() == '1') {
    per.erase(0, 1);
  }
  return std::to_string(rate.count) + "/" + per;
}

protocol::QueueCounts CountsOf(const engine::QueueView& queue) {
  return {.name = queue.name,
          .scheduled = queue.scheduled,
          .ready = queue.ready,
          .leased = queue.leased,
          .dead = queue.dead,
          .damaged = queue.damaged,
          .paused = queue.paused,
          .pause_left = queue.pause_left,
          .concurrency = queue.concurrency,
          .max_jobs = queue.max_jobs,
          .rate = RateOf(queue.rate),
          .burst = queue.rate.burst,
          .enqueued = queue.enqueued,
          .acked = queue.acked,
          .cancelled = queue.cancelled};
}

Response RenderQueueList(const engine::QueueList& list) {
  std::vector<protocol::QueueCounts> queues;
  queues.reserve(list.queues.size());
  for (const engine::QueueView& queue : list.queues) {
    queues.push_back(CountsOf(queue));
  }
  return {.body = protocol::QueuesToJson(queues, list.next_cursor)};
}

Response RenderStats(const engine::StatsView& stats) {
  std::vector<protocol::Stat> figures = {{"scheduled", stats.scheduled},
                                         {"ready", stats.ready},
                                         {"leased", stats.leased},
                                         {"dead", stats.dead},
                                         {"queues", stats.queues},
                                         {"waiting", stats.waiting},
                                         {"enqueued", stats.enqueued},
                                         {"existed", stats.existed},
                                         {"cancelled", stats.cancelled},
                                         {"rescheduled", stats.rescheduled},
                                         {"fired", stats.fired},
                                         {"handed_out", stats.handed_out},
                                         {"acked", stats.acked},
                                         {"nacked", stats.nacked},
                                         {"buried", stats.buried},
                                         {"lease_expired", stats.lease_expired},
                                         {"died", stats.died},
                                         {"kicked", stats.kicked},
                                         {"quota_refusals", stats.quota_refusals},
                                         {"damaged", stats.damaged},
                                         {"commits", stats.commits},
                                         {"epoch", stats.epoch},
                                         {"commit_sequence", stats.commit_sequence}};
  figures.push_back({"clock", std::string(stats.clock)});
  figures.push_back({"now", FormatUtc(stats.now)});
  figures.push_back({"mode", stats.draining ? "draining" : "serving"});
  if (stats.next_due) {
    figures.push_back({"next_due", FormatUtc(*stats.next_due)});
  }
  return {.body = protocol::StatsToJson(figures)};
}

Response RenderForecast(const engine::ForecastView& view) {
  std::vector<protocol::ForecastStep> steps;
  steps.reserve(view.steps.size());
  for (const engine::ForecastView::Step& step : view.steps) {
    steps.push_back({step.from, step.to, step.count, step.approximate});
  }
  return {.body = protocol::ForecastToJson(steps)};
}

Response RenderCancelledIds(const engine::CancelledIds& result) {
  protocol::CancelledJobs cancelled{.cancelled = result.cancelled};
  cancelled.refused.reserve(result.refused.size());
  for (const engine::CancelledIds::Refused& refused : result.refused) {
    cancelled.refused.push_back({refused.id, refused.status});
  }
  return {.body = protocol::CancelledJobsToJson(cancelled)};
}

Response RenderBody(ReplyForm form, const engine::Reply& reply) {
  switch (form) {
    case ReplyForm::kEnqueuedOne:
      return RenderEnqueuedOne(std::get<engine::Enqueued>(reply.body));
    case ReplyForm::kEnqueuedLines:
      return RenderEnqueuedLines(std::get<engine::Enqueued>(reply.body),
                                 [](const engine::Enqueued::Item& item) {
                                   return protocol::EnqueuedToJson({item.job, item.existed});
                                 });
    case ReplyForm::kEnqueuedIds:
      return RenderEnqueuedLines(
          std::get<engine::EnqueuedIds>(reply.body), [](const engine::EnqueuedIds::Item& item) {
            return protocol::EnqueuedIdToJson(item.id, item.existed, item.ended, item.cancelled);
          });
    case ReplyForm::kOneJob:
      return RenderOneJob(*std::get<Indirect<JobView>>(reply.body));
    case ReplyForm::kLeased:
      return {.body = protocol::JobPageToJson({std::get<engine::Leased>(reply.body).jobs, ""})};
    case ReplyForm::kKicked:
      return {.body = protocol::KickedToJson(std::get<engine::Kicked>(reply.body).count)};
    case ReplyForm::kAcked: {
      const auto& acked = std::get<engine::AckedMany>(reply.body);
      return {.body = protocol::AckedLeasesToJson({acked.acked, acked.lost})};
    }
    case ReplyForm::kCancelledIds:
      return RenderCancelledIds(std::get<engine::CancelledIds>(reply.body));
    case ReplyForm::kJobList: {
      const auto& list = std::get<engine::JobList>(reply.body);
      return {.body = protocol::JobPageToJson({list.jobs, list.next_cursor})};
    }
    case ReplyForm::kOneQueue:
      return {.body = protocol::QueueToJson(
                  CountsOf(std::get<engine::QueueList>(reply.body).queues.front()))};
    case ReplyForm::kQueueList:
      return RenderQueueList(std::get<engine::QueueList>(reply.body));
    case ReplyForm::kChangedMany: {
      const auto& changed = std::get<engine::ChangedMany>(reply.body);
      return {.body = protocol::ChangedManyToJson(
                  {changed.matched, changed.changed, changed.next_cursor})};
    }
    case ReplyForm::kForecast:
      return RenderForecast(std::get<engine::ForecastView>(reply.body));
    case ReplyForm::kStats:
      return RenderStats(*std::get<Indirect<engine::StatsView>>(reply.body));
  }
  DELAYD_CHECK(false);
}

}  // namespace

Response Router::RenderAdmin(const AdminAnswer& answer) {
  if (!answer.ok()) {
    return ProblemResponse(answer.status());
  }
  if (const auto* verified = std::get_if<protocol::VerifyResult>(&*answer)) {
    return {.body = protocol::VerifyResultToJson(*verified)};
  }
  return {.body = protocol::BackupResultToJson(std::get<protocol::BackupResult>(*answer))};
}

Response Router::Render(ReplyForm form, const engine::Reply& reply) {
  Response response = reply.status.ok() ? RenderBody(form, reply) : ProblemResponse(reply.status);
  response.commit_sequence = reply.sequence;
  return response;
}

}  // namespace delayd::http
