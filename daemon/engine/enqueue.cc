// New jobs: idempotency by key, batches that are all or nothing.
#include <algorithm>

#include "base/coding.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "daemon/engine/engine_core.h"
#include "daemon/engine/enqueue_checks.h"
#include "storage/keys.h"

#include <boost/container/small_vector.hpp>

namespace delayd::engine {
namespace {

// The fingerprint of all but the payload, which is still to be added. Two requests under one key
// are the same request when their fingerprints are equal. A delay counts as it was asked for, so
// that a retry a second later still matches.
FingerprintPart FingerprintPartOf(const JobSpec& spec) {
  if (spec.key.empty()) {
    return {};
  }
  if (spec.past != nullptr && spec.past->fingerprint != 0) {
    return {.bytes = {}, .fingerprint = spec.past->fingerprint};
  }
  std::string content;
  if (const auto* at = std::get_if<DueAt>(&spec.due)) {
    AppendU8(&content, 1);
    AppendU64(&content, static_cast<uint64_t>(ToMillis(at->at)));
  } else {
    AppendU8(&content, 0);
    AppendU64(&content, static_cast<uint64_t>(std::get<DueAfter>(spec.due).delay.count()));
  }
  const auto append_optional = [&content](bool has, uint64_t value) {
    AppendU8(&content, has ? 1 : 0);
    AppendU64(&content, has ? value : 0);
  };
  // The default priority is the same everywhere and always, so a request that spells it out asks
  // for nothing else. The other defaults are the queue's, and may have changed by the time of a
  // retry.
  const uint32_t priority = spec.priority.value_or(limits::kPriorityDefault);
  append_optional(priority != limits::kPriorityDefault, priority);
  append_optional(spec.max_attempts.has_value(), spec.max_attempts.value_or(0));
  append_optional(spec.lease.has_value(),
                  static_cast<uint64_t>(spec.lease.value_or(Millis(0)).count()));
  append_optional(spec.expires_after.has_value(),
                  static_cast<uint64_t>(spec.expires_after.value_or(Millis(0)).count()));
  if (spec.buried) {
    AppendU8(&content, 1);
  }
  const uint32_t attempts = spec.past != nullptr ? spec.past->attempts : 0;
  const std::string_view error = spec.past != nullptr ? spec.past->last_error : std::string_view();
  if (attempts != 0 || !error.empty() || spec.touch_delay) {
    AppendU8(&content, 2);
    append_optional(spec.touch_delay.has_value(),
                    static_cast<uint64_t>(spec.touch_delay.value_or(Millis(0)).count()));
    AppendU32(&content, attempts);
    content.append(error);
  }
  return {.bytes = spec.payload, .fingerprint = Fingerprint(content)};
}

Status KeyConflict(const JobSpec& spec) {
  return AlreadyExists("key " + spec.key + " in queue " + spec.queue +
                           " belongs to a job with other content; cancel that job, use another "
                           "key, or enqueue with on_conflict",
                       "key_conflict");
}

// No rule says which of the two jobs would count (docs/decisions/0054).
Status NamedTwice(const JobSpec& spec, size_t earlier, std::string_view difference) {
  return AlreadyExists("key " + spec.key + " in queue " + spec.queue + " is that of job " +
                           std::to_string(earlier + 1) + " too, with " + std::string(difference) +
                           "; name it once, or send them one by one",
                       "key_conflict");
}

Status AtLine(const Status& status, size_t index, size_t count) {
  return count == 1 ? status
                    : status.WithContext("job " + std::to_string(index + 1) + " of " +
                                         std::to_string(count));
}

Status Draining() {
  return ResourceExhausted(
      "the daemon is draining and takes no new jobs; try again when it is "
      "started anew, or when 'delayctl drain end' takes them again",
      "draining");
}

// Fills in what the enqueue, or else the queue, says about everything but the due time.
void FillFrom(JobSpec& spec, const Queue& queue, uint64_t fingerprint, storage::JobRecord* record) {
  record->priority = spec.priority.value_or(limits::kPriorityDefault);
  record->attempts = spec.past != nullptr ? spec.past->attempts : 0;
  record->max_attempts = spec.max_attempts.value_or(queue.settings.max_attempts);
  record->lease = spec.lease.value_or(queue.settings.lease);
  record->expires_after = spec.expires_after.value_or(Millis(0));
  record->fingerprint = fingerprint;
  record->last_error = spec.past != nullptr
                           ? Utf8Front(spec.past->last_error, limits::kLastErrorBytesMax)
                           : std::string_view();
  record->payload = std::move(spec.payload);
}

EnqueuedIds IdsOf(const std::vector<EnqueuePlan>& plans) {
  EnqueuedIds ids;
  ids.items.reserve(plans.size());
  for (const EnqueuePlan& plan : plans) {
    const EnqueuePlan& first = plan.same_as ? plans[*plan.same_as] : plan;
    const bool stays = first.existing && first.stays();
    ids.items.push_back({.id = plan.id, .existed = plan.existed()});
    if (stays && first.existing->finished) {
      ids.items.back().ended = JobState::kFinished;
      ids.items.back().cancelled = first.existing->finished->cancelled;
    } else if (stays && first.existing->state == JobState::kDead) {
      ids.items.back().ended = JobState::kDead;
    }
  }
  return ids;
}

Enqueued WithExisting(const std::vector<EnqueuePlan>& plans, Enqueued answer) {
  for (size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].same_as) {
      answer.items[i].job = answer.items[*plans[i].same_as].job;
    }
    answer.items[i].existed = plans[i].existed();
  }
  return answer;
}

}  // namespace

Status EngineCore::PlanKey(const JobSpec& spec, EnqueuePlan* plan) {
  const Queue* queue = queues_.Find(spec.queue);
  if (queue == nullptr) {
    return OkStatus();
  }
  DELAYD_ASSIGN_OR_RETURN(const std::optional<storage::KeyRecord> record,
                          FindKey(*queue, spec.key));
  if (!record) {
    return OkStatus();
  }
  if (record->finished) {
    // A finished job keeps its key for retries of the same request only; the other rules are about
    // live jobs.
    if (record->fingerprint == plan->fingerprint && spec.on_conflict == OnConflict::kFail) {
      plan->existing = FinishedByKey(*record);
    }
    return OkStatus();
  }
  if (record->fingerprint != plan->fingerprint && spec.on_conflict == OnConflict::kFail) {
    return KeyConflict(spec);
  }
  DELAYD_ASSIGN_OR_RETURN(plan->existing, LocateId(record->id));
  if (spec.on_conflict != OnConflict::kReplace) {
    return OkStatus();
  }
  if (plan->existing->state == JobState::kLeased) {
    return RefuseState(*plan->existing,
                       KeyRef{spec.queue, spec.key},
                       "a worker has it; try again when its lease is over");
  }
  DELAYD_ASSIGN_OR_RETURN(storage::JobRecord replaced, ReadRecord(*plan->existing));
  plan->replaced = std::make_unique<storage::JobRecord>(std::move(replaced));
  return OkStatus();
}

Status EngineCore::PlanAll(const std::vector<JobSpec>& specs, std::vector<EnqueuePlan>* to) {
  std::vector<EnqueuePlan>& plans = *to;
  plans.clear();
  plans.resize(specs.size());
  boost::container::small_vector<FingerprintPart, 1> fingerprints;
  fingerprints.reserve(specs.size());
  for (const JobSpec& spec : specs) {
    fingerprints.push_back(FingerprintPartOf(spec));
  }
  AddToFingerprints(fingerprints);
  boost::unordered_flat_map<std::string, size_t> first_with_key;
  for (size_t i = 0; i < specs.size(); ++i) {
    const JobSpec& spec = specs[i];
    DELAYD_RETURN_IF_ERROR(
        AtLine(CheckSpec(spec, options_.payload_bytes_max, now_.wall), i, specs.size()));
    if (spec.key.empty()) {
      continue;
    }
    plans[i].fingerprint = fingerprints[i].fingerprint;
    // Neither name holds a newline, so the pair is unambiguous.
    const auto [earlier, is_first] = first_with_key.emplace(spec.queue + '\n' + spec.key, i);
    if (is_first) {
      DELAYD_RETURN_IF_ERROR(AtLine(PlanKey(spec, &plans[i]), i, specs.size()));
    } else if (plans[earlier->second].fingerprint != plans[i].fingerprint) {
      return AtLine(NamedTwice(spec, earlier->second, "other content"), i, specs.size());
    } else if (specs[earlier->second].on_conflict != spec.on_conflict) {
      return AtLine(NamedTwice(spec, earlier->second, "another on_conflict"), i, specs.size());
    } else {
      plans[i].same_as = earlier->second;
    }
  }
  return OkStatus();
}

// Takes over what is known of the job's life in another store.
void EngineCore::TakeStory(const JobSpec& spec, storage::JobRecord* record) const {
  const JobPast& past = *spec.past;
  const auto* after = std::get_if<DueAfter>(&spec.due);
  if (past.created && after != nullptr && !record->delay) {
    record->delay = after->delay;  // else the time since `created` would be part of it
  }
  record->created = std::min(past.created.value_or(now_.wall), now_.wall);
  record->timeouts = past.timeouts;
  record->releases = past.releases;
  record->buries = past.buries;
  record->kicks = past.kicks;
  record->events = past.history;
}

// The job keeps its id and its story; everything else is as this enqueue says.
void EngineCore::ReplaceOne(JobSpec& spec, EnqueuePlan& plan, JobView* view) {
  storage::JobRecord& record = *plan.replaced;
  const Located& located = *plan.existing;
  if (record.fingerprint != plan.fingerprint) {
    AddEvent(&record, storage::JobEvent::Kind::kReplaced, {}, {});
  }
  const auto* after = std::get_if<DueAfter>(&spec.due);
  record.delay = spec.touch_delay.value_or(after != nullptr ? after->delay : Millis(-1));
  SetDue(&record, spec.due);
  if (record.payload_is_big) {
    pending_.Delete(storage::Table::kBig, storage::IndexKey(record.id));
    record.payload_is_big = false;
  }
  FillFrom(spec, queues_[record.queue], plan.fingerprint, &record);
  PutPayload(&record);
  PutLiveKey(record);
  const WallTime key_due = KeyDue(record.due);
  if (located.state == JobState::kDead) {
    PutRevivedRows(record, located.index.at, key_due);
  } else {
    PutMovedRows(record, located.index.at, key_due);
  }
  ++counters_.rescheduled;
  const JobState state = Settle(record, key_due, located.slot);
  if (view != nullptr) {
    *view = ViewOf(record, state);
  }
}

void EngineCore::EnqueueOne(JobSpec& spec,
                            const EnqueuePlan& plan,
                            const std::string& user,
                            JobView* view) {
  const Queue& queue = QueueForNewJob(spec.queue);
  storage::JobRecord record;
  record.id = plan.id;
  record.queue = queue.id;
  SetDue(&record, spec.due);
  record.created = now_.wall;
  record.key = spec.key;
  record.delay = spec.touch_delay;
  if (spec.past != nullptr) {
    TakeStory(spec, &record);
  }
  FillFrom(spec, queue, plan.fingerprint, &record);
  record.user = user;
  const WallTime key_due = KeyDue(record.due);
  PutNewRows(&record, key_due);
  JobState state = JobState::kDead;
  if (spec.buried) {
    if (spec.past == nullptr) {  // one from another store brings its own error, if any
      record.last_error = "enqueued as buried";
    }
    PutDeadRows(record, key_due, now_.wall);
  } else {
    state = Settle(record, key_due, std::nullopt);
  }
  ++counters_.enqueued;
  if (view != nullptr) {
    *view = ViewOf(record, state);
  }
}

StatusOr<Body> EngineCore::Do(Enqueue& command) {
  std::vector<JobSpec>& specs = command.jobs;
  if (specs.empty() || specs.size() > limits::kEnqueueBatchJobsMax) {
    return InvalidArgument("a batch has " + std::to_string(specs.size()) + " jobs; send 1 to " +
                               std::to_string(limits::kEnqueueBatchJobsMax),
                           "invalid_batch");
  }
  // Everything that can be refused is refused here, before the first row is put: all or nothing
  // (P8).
  std::vector<EnqueuePlan>& plans = plans_;
  DELAYD_RETURN_IF_ERROR(PlanAll(specs, &plans));
  if (draining_ && !std::ranges::all_of(plans, &EnqueuePlan::existed)) {
    return Draining();
  }
  // A retry of what is stored already needs no room.
  if (!std::ranges::all_of(plans, &EnqueuePlan::stays)) {
    DELAYD_RETURN_IF_ERROR(enqueue_refusal_);
    if (Status refusal = CheckQuotas(command, plans); !refusal.ok()) {
      ++counters_.quota_refusals;
      pending_.TouchAll();  // it rests on all changes so far, as counters do, and waits for them
      return refusal;
    }
  }
  Enqueued answer;
  answer.items.resize(command.brief ? 0 : specs.size());
  const auto view_of = [&answer](size_t i) {
    return answer.items.empty() ? nullptr : &answer.items[i].job;
  };
  DELAYD_RETURN_IF_ERROR(NameAll(&plans, &answer));
  for (size_t i = 0; i < specs.size(); ++i) {
    if (plans[i].replaced) {
      ReplaceOne(specs[i], plans[i], view_of(i));
    } else if (plans[i].stays()) {
      ++counters_.existed;
    } else {
      EnqueueOne(specs[i], plans[i], command.user, view_of(i));
    }
  }
  return command.brief ? Body(IdsOf(plans)) : Body(WithExisting(plans, std::move(answer)));
}

// Finds each plan's id, and what clients are told of the jobs that stay as they are. Nothing can be
// refused after this.
Status EngineCore::NameAll(std::vector<EnqueuePlan>* plans, Enqueued* answer) {
  for (size_t i = 0; i < plans->size(); ++i) {
    EnqueuePlan& plan = (*plans)[i];
    if (plan.existing) {
      plan.id = plan.existing->id;
    } else if (plan.same_as) {
      plan.id = (*plans)[*plan.same_as].id;
    } else {
      DELAYD_ASSIGN_OR_RETURN(plan.id, job_ids_.Next());
    }
    if (plan.existing && !plan.replaced && !answer->items.empty()) {
      DELAYD_ASSIGN_OR_RETURN(answer->items[i].job,
                              ShowLocated(*plan.existing, /*with_payload=*/false));
    }
  }
  return OkStatus();
}

}  // namespace delayd::engine
