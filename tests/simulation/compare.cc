#include "tests/simulation/compare.h"

#include <algorithm>
#include <sstream>

namespace delayd::simulation {
namespace {

std::string Text(const std::string& value) {
  return value.size() <= 40 ? "\"" + value + "\"" : "\"" + value.substr(0, 40) + "...\"";
}

std::string Text(uint64_t value) {
  return std::to_string(value);
}

std::string Text(uint32_t value) {
  return std::to_string(value);
}

std::string Text(bool value) {
  return value ? "true" : "false";
}

std::string Text(JobId value) {
  return std::to_string(ToInt(value));
}

std::string Text(Millis value) {
  return std::to_string(value.count()) + " ms";
}

std::string Text(WallTime value) {
  return std::to_string(ToMillis(value));
}

std::string Text(JobState value) {
  return std::string(JobStateName(value));
}

std::string Text(DueKind value) {
  return value == DueKind::kRelative ? "relative" : "absolute";
}

std::string Text(const LeaseToken& value) {
  return FormatLeaseToken(value);
}

std::string Text(BootTime value) {
  return std::to_string(ToMillis(value));
}

std::string Text(const std::vector<JobEvent>& events) {
  std::string out = "[";
  for (const JobEvent& event : events) {
    out += " " + std::string(JobEventName(event.kind)) + " at " + Text(event.at) + " by " +
           Text(event.who) + ": " + Text(event.what);
  }
  return out + " ]";
}

template <typename T>
std::string Text(const std::optional<T>& value) {
  return value ? Text(*value) : "none";
}

class Differences {
 public:
  template <typename T>
  void Field(const char* name, const T& expected, const T& actual) {
    if (!(expected == actual)) {
      out_ += (out_.empty() ? "" : "; ") + std::string(name) + " should be " + Text(expected) +
              " and is " + Text(actual);
    }
  }

  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

std::string BodyDifference(const engine::Enqueued& expected, const engine::Enqueued& actual) {
  if (expected.items.size() != actual.items.size()) {
    return "P8: a batch of " + Text(expected.items.size()) + " is answered with " +
           Text(actual.items.size()) + " jobs";
  }
  for (size_t i = 0; i < expected.items.size(); ++i) {
    Differences differences;
    differences.Field("P7: existed", expected.items[i].existed, actual.items[i].existed);
    std::string one = differences.Take() + Difference(expected.items[i].job, actual.items[i].job);
    if (!one.empty()) {
      return "job " + Text(i + 1) + " of the batch: " + one;
    }
  }
  return {};
}

std::string BodyDifference(const engine::EnqueuedIds& expected, const engine::EnqueuedIds& actual) {
  if (expected.items.size() != actual.items.size()) {
    return "P8: a batch of " + Text(expected.items.size()) + " is answered with " +
           Text(actual.items.size()) + " ids";
  }
  for (size_t i = 0; i < expected.items.size(); ++i) {
    Differences differences;
    differences.Field("id", ToInt(expected.items[i].id), ToInt(actual.items[i].id));
    differences.Field("P7: existed", expected.items[i].existed, actual.items[i].existed);
    differences.Field("ended", expected.items[i].ended, actual.items[i].ended);
    differences.Field("cancelled", expected.items[i].cancelled, actual.items[i].cancelled);
    if (std::string one = differences.Take(); !one.empty()) {
      return "job " + Text(i + 1) + " of the batch: " + one;
    }
  }
  return {};
}

std::string BodyDifference(const JobView& expected, const JobView& actual) {
  return Difference(expected, actual);
}

std::string BodyDifference(const engine::Leased& expected, const engine::Leased& actual) {
  const size_t both = std::min(expected.jobs.size(), actual.jobs.size());
  for (size_t i = 0; i < both; ++i) {
    if (std::string one = Difference(expected.jobs[i], actual.jobs[i]); !one.empty()) {
      return "hand-out " + Text(i + 1) + ": " + one;
    }
  }
  if (expected.jobs.size() > both) {
    return "P3: not handed out: " + Describe(expected.jobs[both]);
  }
  if (actual.jobs.size() > both) {
    return "handed out and should not be: " + Describe(actual.jobs[both]);
  }
  return {};
}

std::string BodyDifference(const engine::QueueList& expected, const engine::QueueList& actual) {
  if (expected.next_cursor != actual.next_cursor) {
    return "next_cursor should be " + Text(expected.next_cursor) + " and is " +
           Text(actual.next_cursor);
  }
  if (expected.queues.size() != actual.queues.size()) {
    return "there should be " + Text(expected.queues.size()) + " queues and there are " +
           Text(actual.queues.size());
  }
  for (size_t i = 0; i < actual.queues.size(); ++i) {
    Differences differences;
    differences.Field("name", expected.queues[i].name, actual.queues[i].name);
    differences.Field("scheduled", expected.queues[i].scheduled, actual.queues[i].scheduled);
    differences.Field("ready", expected.queues[i].ready, actual.queues[i].ready);
    differences.Field("leased", expected.queues[i].leased, actual.queues[i].leased);
    differences.Field("dead", expected.queues[i].dead, actual.queues[i].dead);
    differences.Field("urgent", expected.queues[i].urgent, actual.queues[i].urgent);
    differences.Field("paused", expected.queues[i].paused, actual.queues[i].paused);
    differences.Field(
        "pause_length", expected.queues[i].pause_length, actual.queues[i].pause_length);
    differences.Field("pause_left", expected.queues[i].pause_left, actual.queues[i].pause_left);
    differences.Field("enqueued", expected.queues[i].enqueued, actual.queues[i].enqueued);
    differences.Field("acked", expected.queues[i].acked, actual.queues[i].acked);
    differences.Field("cancelled", expected.queues[i].cancelled, actual.queues[i].cancelled);
    differences.Field("pauses", expected.queues[i].pauses, actual.queues[i].pauses);
    differences.Field("concurrency", expected.queues[i].concurrency, actual.queues[i].concurrency);
    differences.Field("max_jobs", expected.queues[i].max_jobs, actual.queues[i].max_jobs);
    differences.Field("rate", expected.queues[i].rate.count, actual.queues[i].rate.count);
    differences.Field("rate per", expected.queues[i].rate.per, actual.queues[i].rate.per);
    differences.Field("burst", expected.queues[i].rate.burst, actual.queues[i].rate.burst);
    if (std::string one = differences.Take(); !one.empty()) {
      return "queue " + actual.queues[i].name + ": " + one;
    }
  }
  return {};
}

std::string BodyDifference(const engine::AckedMany& expected, const engine::AckedMany& actual) {
  Differences differences;
  differences.Field("acked", expected.acked, actual.acked);
  differences.Field("leases lost", expected.lost.size(), actual.lost.size());
  return expected.lost == actual.lost ? differences.Take() : "P6: other leases are lost";
}

std::string BodyDifference(const engine::CancelledIds& expected,
                           const engine::CancelledIds& actual) {
  Differences differences;
  differences.Field("cancelled", expected.cancelled, actual.cancelled);
  differences.Field("refused", expected.refused.size(), actual.refused.size());
  for (size_t i = 0; i < std::min(expected.refused.size(), actual.refused.size()); ++i) {
    const auto text = [](const engine::CancelledIds::Refused& refused) {
      return "job " + std::to_string(ToInt(refused.id)) + " " +
             std::string(refused.status.reason());
    };
    differences.Field("P4: refused", text(expected.refused[i]), text(actual.refused[i]));
  }
  return differences.Take();
}

std::string BodyDifference(const engine::Kicked& expected, const engine::Kicked& actual) {
  Differences differences;
  differences.Field("kicked", expected.count, actual.count);
  return differences.Take();
}

std::string BodyDifference(const engine::StatsView& expected, const engine::StatsView& actual) {
  Differences differences;
  differences.Field("next_due", expected.next_due, actual.next_due);
  return differences.Take() + Difference(expected, actual);
}

// Lists are checked by the oracle itself.
std::string BodyDifference(const engine::JobList&, const engine::JobList&) {
  return {};
}

std::string BodyDifference(const engine::ChangedMany& expected, const engine::ChangedMany& actual) {
  Differences differences;
  differences.Field("matched", expected.matched, actual.matched);
  differences.Field("changed", expected.changed, actual.changed);
  differences.Field("next_cursor", expected.next_cursor, actual.next_cursor);
  return differences.Take();
}

std::string BodyDifference(const engine::ForecastView& expected,
                           const engine::ForecastView& actual) {
  if (expected.steps.size() != actual.steps.size()) {
    return "a forecast of " + Text(expected.steps.size()) + " steps is answered with " +
           Text(actual.steps.size());
  }
  for (size_t i = 0; i < actual.steps.size(); ++i) {
    Differences differences;
    differences.Field("from", expected.steps[i].from, actual.steps[i].from);
    differences.Field("to", expected.steps[i].to, actual.steps[i].to);
    if (!actual.steps[i].approximate) {
      differences.Field("count", expected.steps[i].count, actual.steps[i].count);
    }
    if (std::string one = differences.Take(); !one.empty()) {
      return "step " + Text(i + 1) + " of the forecast: " + one;
    }
  }
  return {};
}

std::string BodyDifference(const std::monostate&, const std::monostate&) {
  return {};
}

template <typename T>
std::string BodyDifference(const Indirect<T>& expected, const Indirect<T>& actual) {
  return BodyDifference(*expected, *actual);
}

}  // namespace

std::string Difference(const JobView& expected, const JobView& actual) {
  Differences differences;
  differences.Field("id", expected.id, actual.id);
  differences.Field("queue", expected.queue, actual.queue);
  differences.Field("key", expected.key, actual.key);
  differences.Field("state", expected.state, actual.state);
  differences.Field("due kind", expected.due_kind, actual.due_kind);
  differences.Field("due", expected.due, actual.due);
  differences.Field("created", expected.created, actual.created);
  differences.Field("priority", expected.priority, actual.priority);
  differences.Field("lease", expected.lease, actual.lease);
  differences.Field("attempt", expected.attempt, actual.attempt);
  differences.Field("max_attempts", expected.max_attempts, actual.max_attempts);
  differences.Field("expires_after", expected.expires_after, actual.expires_after);
  differences.Field("last_error", expected.last_error, actual.last_error);
  differences.Field("payload", expected.payload, actual.payload);
  differences.Field("payload_bytes", expected.payload_bytes, actual.payload_bytes);
  differences.Field("delay", expected.delay, actual.delay);
  differences.Field("fingerprint", expected.fingerprint, actual.fingerprint);
  differences.Field("time_left", expected.time_left, actual.time_left);
  differences.Field("reserves", expected.reserves, actual.reserves);
  differences.Field("timeouts", expected.timeouts, actual.timeouts);
  differences.Field("releases", expected.releases, actual.releases);
  differences.Field("buries", expected.buries, actual.buries);
  differences.Field("kicks", expected.kicks, actual.kicks);
  differences.Field("finished", expected.finished, actual.finished);
  differences.Field("outcome", expected.outcome, actual.outcome);
  differences.Field("lease_token", expected.lease_token, actual.lease_token);
  differences.Field("lease_expires", expected.lease_expires, actual.lease_expires);
  differences.Field("lease_ends", expected.lease_ends, actual.lease_ends);
  differences.Field("lateness", expected.lateness, actual.lateness);
  differences.Field("client", expected.client, actual.client);
  differences.Field("history", expected.history, actual.history);
  std::string all = differences.Take();
  return all.empty() ? all : "job " + Text(actual.id) + ": " + all;
}

std::string Difference(const engine::Reply& expected, const engine::Reply& actual) {
  if (expected.status.code() != actual.status.code() ||
      expected.status.reason() != actual.status.reason()) {
    return "the answer should be " +
           std::string(expected.status.ok() ? "ok" : expected.status.reason()) + " and is " +
           std::string(actual.status.ok() ? "ok" : actual.status.reason()) + " (" +
           actual.status.message() + ")";
  }
  if (expected.body.index() != actual.body.index()) {
    return "the answer has a body of another kind";
  }
  return std::visit(
      [&actual](const auto& body) {
        return BodyDifference(body, std::get<std::decay_t<decltype(body)>>(actual.body));
      },
      expected.body);
}

std::string Difference(const engine::StatsView& expected, const engine::StatsView& actual) {
  Differences differences;
  differences.Field("scheduled", expected.scheduled, actual.scheduled);
  differences.Field("ready", expected.ready, actual.ready);
  differences.Field("leased", expected.leased, actual.leased);
  differences.Field("dead", expected.dead, actual.dead);
  differences.Field("queues", expected.queues, actual.queues);
  differences.Field("waiting", expected.waiting, actual.waiting);
  differences.Field("urgent", expected.urgent, actual.urgent);
  differences.Field("draining", expected.draining, actual.draining);
  differences.Field("enqueued", expected.enqueued, actual.enqueued);
  differences.Field("existed", expected.existed, actual.existed);
  differences.Field("cancelled", expected.cancelled, actual.cancelled);
  differences.Field("rescheduled", expected.rescheduled, actual.rescheduled);
  differences.Field("handed_out", expected.handed_out, actual.handed_out);
  differences.Field("acked", expected.acked, actual.acked);
  differences.Field("nacked", expected.nacked, actual.nacked);
  differences.Field("buried", expected.buried, actual.buried);
  differences.Field("lease_expired", expected.lease_expired, actual.lease_expired);
  differences.Field("died", expected.died, actual.died);
  differences.Field("kicked", expected.kicked, actual.kicked);
  differences.Field("quota_refusals", expected.quota_refusals, actual.quota_refusals);
  differences.Field("damaged", expected.damaged, actual.damaged);
  differences.Field("epoch", expected.epoch, actual.epoch);
  std::string all = differences.Take();
  return all.empty() ? all : "counters: " + all;
}

std::string DescribeCommand(const engine::Command& command) {
  std::ostringstream out;
  out << engine::CommandName(command);
  if (const auto* enqueue = std::get_if<engine::Enqueue>(&command)) {
    for (const JobSpec& spec : enqueue->jobs) {
      const auto* at = std::get_if<DueAt>(&spec.due);
      out << " [" << spec.queue << " key \"" << spec.key << "\" due "
          << (at != nullptr ? "at " + std::to_string(ToMillis(at->at))
                            : "in " + Text(std::get<DueAfter>(spec.due).delay))
          << (spec.buried ? " buried]" : "]");
    }
  } else if (const auto* drain = std::get_if<engine::Drain>(&command)) {
    out << (drain->on ? " on" : " off");
  } else if (const auto* abandon = std::get_if<engine::Abandon>(&command)) {
    out << " of request " << abandon->waiting;
  } else if (const auto* end = std::get_if<engine::EndWait>(&command)) {
    out << " of request " << end->waiting;
  } else if (const auto* lease = std::get_if<engine::Lease>(&command)) {
    out << " of " << lease->count << " from " << lease->queues.size() << " queues, wait "
        << Text(lease->wait) << ", lease " << Text(lease->lease);
  } else if (const auto* list = std::get_if<engine::List>(&command)) {
    out << " of queue " << Text(list->queue) << " state "
        << (list->state ? JobStateName(*list->state) : "any") << " due before "
        << Text(list->due_before) << " due after " << Text(list->due_after) << " prefix \""
        << list->key_prefix << "\" limit " << list->limit << " cursor " << list->cursor;
  } else if (const auto* many = std::get_if<engine::ChangeMany>(&command)) {
    out << (many->action == engine::ChangeMany::Action::kCancel ? " cancel"
            : many->action == engine::ChangeMany::Action::kKick ? " kick"
                                                                : " reschedule")
        << (many->dry_run ? " dry run" : "") << " in queue " << Text(many->filter.queue)
        << " state " << (many->filter.state ? JobStateName(*many->filter.state) : "any")
        << " due before " << Text(many->filter.due_before) << " due after "
        << Text(many->filter.due_after) << " prefix \"" << many->filter.key_prefix << "\" limit "
        << many->limit << " cursor " << many->cursor;
  } else if (const auto* forecast = std::get_if<engine::Forecast>(&command)) {
    out << " of queue " << Text(forecast->queue) << " from " << Text(forecast->from) << " to "
        << Text(forecast->to) << " by " << Text(forecast->step);
  } else if (const auto* cancel = std::get_if<engine::Cancel>(&command)) {
    out << " " << DescribeJobRef(cancel->job) << (cancel->if_tag.empty() ? "" : " if as told");
  } else if (const auto* cancels = std::get_if<engine::CancelIds>(&command)) {
    for (const JobId id : cancels->jobs) {
      out << " " << ToInt(id);
    }
  } else if (const auto* move = std::get_if<engine::Reschedule>(&command)) {
    out << " " << DescribeJobRef(move->job) << (move->if_tag.empty() ? "" : " if as told");
  } else if (const auto* touch = std::get_if<engine::Touch>(&command)) {
    out << " " << DescribeJobRef(touch->job) << (touch->if_tag.empty() ? "" : " if as told");
  } else if (const auto* kick = std::get_if<engine::Kick>(&command)) {
    out << " " << DescribeJobRef(kick->job);
  } else if (const auto* one = std::get_if<engine::LeaseJob>(&command)) {
    out << " " << DescribeJobRef(one->job) << " lease " << Text(one->lease);
  } else if (const auto* kicks = std::get_if<engine::KickQueue>(&command)) {
    out << " " << kicks->queue << " count " << kicks->count;
  } else if (const auto* pause = std::get_if<engine::Pause>(&command)) {
    out << " " << pause->queue << " for " << Text(pause->duration);
  } else if (const auto* show = std::get_if<engine::Show>(&command)) {
    out << " " << DescribeJobRef(show->job);
  } else if (const auto* ack = std::get_if<engine::Ack>(&command)) {
    out << " " << FormatLeaseToken(ack->token);
  } else if (const auto* acks = std::get_if<engine::AckMany>(&command)) {
    for (const LeaseToken& token : acks->tokens) {
      out << " " << FormatLeaseToken(token);
    }
  } else if (const auto* nack = std::get_if<engine::Nack>(&command)) {
    out << " " << FormatLeaseToken(nack->token) << " delay " << Text(nack->delay);
  } else if (const auto* bury = std::get_if<engine::Bury>(&command)) {
    out << " " << FormatLeaseToken(bury->token);
  } else if (const auto* extend = std::get_if<engine::Extend>(&command)) {
    out << " " << FormatLeaseToken(extend->token) << " by " << Text(extend->lease);
  }
  return out.str();
}

std::string Describe(const JobView& job) {
  std::ostringstream out;
  out << "job " << ToInt(job.id) << " in " << job.queue << " key \"" << job.key << "\" "
      << JobStateName(job.state) << " due " << Text(job.due_kind) << " " << ToMillis(job.due)
      << " created " << ToMillis(job.created) << " attempt " << job.attempt << " token "
      << Text(job.lease_token) << " lateness " << Text(job.lateness);
  return out.str();
}

std::string Describe(const engine::Reply& reply) {
  std::ostringstream out;
  out << reply.request << " at " << reply.sequence << " "
      << (reply.status.ok() ? "ok" : reply.status.reason());
  if (const auto* enqueued = std::get_if<engine::Enqueued>(&reply.body)) {
    for (const auto& item : enqueued->items) {
      out << " [" << Describe(item.job) << (item.existed ? " existed]" : "]");
    }
  } else if (const auto* one = std::get_if<Indirect<JobView>>(&reply.body)) {
    out << " " << Describe(**one);
  } else if (const auto* leased = std::get_if<engine::Leased>(&reply.body)) {
    for (const JobView& job : leased->jobs) {
      out << " [" << Describe(job) << "]";
    }
  } else if (const auto* list = std::get_if<engine::JobList>(&reply.body)) {
    for (const JobView& job : list->jobs) {
      out << " [" << Describe(job) << "]";
    }
    out << " next " << list->next_cursor;
  } else if (const auto* many = std::get_if<engine::ChangedMany>(&reply.body)) {
    out << " matched " << many->matched << " changed " << many->changed << " next "
        << many->next_cursor;
  }
  return out.str();
}

}  // namespace delayd::simulation
