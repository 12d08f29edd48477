#include "protocol/stats_json.h"

#include <array>

#include "protocol/duration.h"
#include "protocol/json_members.h"
#include "protocol/json_reader.h"
#include "protocol/json_writer.h"

namespace delayd::protocol {
namespace {

constexpr std::array<std::string_view, 1> kDrainMembers = {"on"};

StatusOr<Health::Reason> ParseReason(std::string_view json) {
  Health::Reason reason;
  DELAYD_RETURN_IF_ERROR(
      ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
        if (name == "code") {
          return SetString(name, value, &reason.code);
        }
        return name == "detail" ? SetString(name, value, &reason.detail) : OkStatus();
      }));
  return reason;
}

}  // namespace

std::string QueueToJson(const QueueCounts& queue) {
  JsonObjectWriter writer;
  writer.String("name", queue.name);
  writer.Number("scheduled", queue.scheduled);
  writer.Number("ready", queue.ready);
  writer.Number("leased", queue.leased);
  writer.Number("dead", queue.dead);
  if (queue.damaged != 0) {
    writer.Number("damaged", queue.damaged);
  }
  writer.Bool("paused", queue.paused);
  if (queue.pause_left.has_value()) {
    writer.String("pause_left", FormatDuration(*queue.pause_left));
  }
  if (queue.concurrency != 0) {
    writer.Number("concurrency", queue.concurrency);
  }
  if (queue.max_jobs != 0) {
    writer.Number("max_jobs", queue.max_jobs);
  }
  if (!queue.rate.empty()) {
    writer.String("rate", queue.rate);
    writer.Number("burst", queue.burst);
  }
  writer.Number("enqueued", queue.enqueued);
  writer.Number("acked", queue.acked);
  writer.Number("cancelled", queue.cancelled);
  return writer.Take();
}

StatusOr<QueueCounts> ParseQueue(std::string_view json) {
  QueueCounts queue;
  DELAYD_RETURN_IF_ERROR(ReadAnswer(
      json, {"name", "ready"}, [&](std::string_view name, const JsonValue& value) -> Status {
        if (name == "name") {
          return SetString(name, value, &queue.name);
        }
        if (name == "scheduled") {
          return SetUint64(name, value, kCountMax, &queue.scheduled);
        }
        if (name == "ready") {
          return SetUint64(name, value, kCountMax, &queue.ready);
        }
        if (name == "leased") {
          return SetUint64(name, value, kCountMax, &queue.leased);
        }
        if (name == "dead") {
          return SetUint64(name, value, kCountMax, &queue.dead);
        }
        if (name == "damaged") {
          return SetUint64(name, value, kCountMax, &queue.damaged);
        }
        if (name == "paused") {
          return SetBool(name, value, &queue.paused);
        }
        if (name == "pause_left") {
          return SetDuration(name, value, &queue.pause_left);
        }
        if (name == "concurrency") {
          return SetUint32(name, value, &queue.concurrency);
        }
        if (name == "max_jobs") {
          return SetUint32(name, value, &queue.max_jobs);
        }
        if (name == "rate") {
          return SetString(name, value, &queue.rate);
        }
        if (name == "burst") {
          return SetUint32(name, value, &queue.burst);
        }
        if (name == "enqueued") {
          return SetUint64(name, value, kCountMax, &queue.enqueued);
        }
        if (name == "acked") {
          return SetUint64(name, value, kCountMax, &queue.acked);
        }
        return name == "cancelled" ? SetUint64(name, value, kCountMax, &queue.cancelled)
                                   : OkStatus();
      }));
  return queue;
}

std::string QueuesToJson(const std::vector<QueueCounts>& queues, std::string_view next_cursor) {
  return JsonPage("queues", queues, QueueToJson, next_cursor);
}

StatusOr<QueuePage> ParseQueues(std::string_view json) {
  QueuePage page;
  DELAYD_RETURN_IF_ERROR(
      ReadAnswer(json, {"queues"}, [&](std::string_view name, const JsonValue& value) -> Status {
        if (name == "queues") {
          return SetObjects(name, value, ParseQueue, &page.queues);
        }
        return name == "next_cursor" ? SetString(name, value, &page.next_cursor) : OkStatus();
      }));
  return page;
}

std::string StatsToJson(const std::vector<Stat>& stats) {
  JsonObjectWriter writer;
  for (const Stat& stat : stats) {
    if (const auto* number = std::get_if<uint64_t>(&stat.value)) {
      writer.Number(stat.name, *number);
    } else {
      writer.String(stat.name, std::get<std::string>(stat.value));
    }
  }
  return writer.Take();
}

StatusOr<std::vector<Stat>> ParseStats(std::string_view json) {
  std::vector<Stat> stats;
  DELAYD_RETURN_IF_ERROR(
      ReadAnswer(json, {"scheduled"}, [&](std::string_view name, const JsonValue& value) {
        const StatusOr<uint64_t> number = JsonToUint(value, kCountMax);
        if (number.ok()) {
          stats.push_back({std::string(name), *number});
        } else {
          stats.push_back({std::string(name), std::string(value.text)});
        }
        return OkStatus();
      }));
  return stats;
}

std::string DrainRequestToJson(bool on) {
  JsonObjectWriter writer;
  writer.Bool("on", on);
  return writer.Take();
}

StatusOr<bool> ParseDrainRequest(std::string_view json) {
  bool on = true;
  if (!IsBlank(json)) {
    DELAYD_RETURN_IF_ERROR(
        ReadJsonObject(json, [&](std::string_view name, const JsonValue& value) -> Status {
          return name == "on" ? SetBool(name, value, &on) : UnknownMember(name, kDrainMembers);
        }));
  }
  return on;
}

std::string HealthToJson(const Health& health) {
  JsonObjectWriter writer;
  writer.String("status", health.status);
  writer.String("version", health.version);
  if (!health.reasons.empty()) {
    writer.Raw("reasons", JsonArray(health.reasons, [](const Health::Reason& reason) {
                 JsonObjectWriter one;
                 one.String("code", reason.code);
                 one.String("detail", reason.detail);
                 return one.Take();
               }));
  }
  return writer.Take();
}

std::string Health::Why() const {
  std::string why;
  for (const Reason& reason : reasons) {
    why += (why.empty() ? "" : "; ") + reason.code + ": " + reason.detail;
  }
  return why;
}

StatusOr<Health> ParseHealth(std::string_view json) {
  Health health;
  DELAYD_RETURN_IF_ERROR(ReadAnswer(
      json, {"status", "version"}, [&](std::string_view name, const JsonValue& value) -> Status {
        if (name == "status") {
          return SetString(name, value, &health.status);
        }
        if (name == "version") {
          return SetString(name, value, &health.version);
        }
        return name == "reasons" ? SetObjects(name, value, ParseReason, &health.reasons)
                                 : OkStatus();
      }));
  return health;
}

}  // namespace delayd::protocol
