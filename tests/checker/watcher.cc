#include "tests/checker/watcher.h"

#include <algorithm>

namespace delayd::checker {
namespace {

Moment At(const Event& event) {
  return {event.boot, event.t};
}

std::string ContentOf(const JobEntry& spec) {
  return spec.payload + '\n' + std::to_string(spec.delay) + '\n' + std::to_string(spec.due) + '\n' +
         std::to_string(spec.max_attempts);
}

// What gives a job another due time.
bool IsMove(const Event& event) {
  return event.op == Op::kReschedule || event.op == Op::kKick ||
         (event.op == Op::kNack && event.jobs.at(0).delay != kNotSet);
}

Promise PromiseOf(const JobEntry& spec, const Event& invoke) {
  Promise promise{.not_before_wall = spec.due};
  if (spec.due == kNotSet && spec.delay != kNotSet) {
    promise.not_before = Moment{invoke.boot, invoke.t + spec.delay};
  }
  return promise;
}

// Of two kinds none.
Promise Weaker(const Promise& a, const Promise& b) {
  return {.not_before =
              a.not_before && b.not_before ? std::min(a.not_before, b.not_before) : std::nullopt,
          // kNotSet is less than every time.
          .not_before_wall = std::min(a.not_before_wall, b.not_before_wall)};
}

// If the wall clock was set back since `invoke`, the daemon may have read it before that.
int64_t LatestWall(const Event& invoke, const Event& answer) {
  if (invoke.w == kNotSet || answer.w == kNotSet || invoke.boot != answer.boot) {
    return answer.w;
  }
  const int64_t gone_on = invoke.w + (answer.t - invoke.t);
  return gone_on > answer.w + 1 ? gone_on : answer.w;  // all of them are cut to milliseconds
}

bool SeqAfter(uint64_t later, uint64_t earlier) {
  return later != 0 && earlier != 0 && later > earlier;
}

}  // namespace

void Watcher::Fail(const char* invariant, uint64_t line, std::string what) {
  ++verdict_.violation_count;
  if (verdict_.violations.size() < kViolationsMax) {
    verdict_.violations.push_back({invariant, line, std::move(what)});
  }
}

bool Watcher::KilledBetween(const Moment& from, const Moment& to) const {
  const auto kill = std::ranges::lower_bound(kills_, from);
  return kill != kills_.end() && *kill <= to;
}

uint64_t Watcher::IdOf(const JobEntry& entry) const {
  if (entry.id != 0 || entry.key.empty()) {
    return entry.id;
  }
  const auto found = keys_.find({entry.queue, entry.key});
  return found == keys_.end() ? 0 : found->second.id;
}

void Watcher::See(Event event) {
  ++verdict_.events;
  if (event.op == Op::kKill) {
    ++verdict_.kills;
    kills_.push_back(At(event));
  } else if (event.op == Op::kConfig) {
    key_retention_ = event.key_retention;
  } else if (event.op == Op::kFinal) {
    Final(event);
    listed_ = std::move(event.jobs);
  } else if (event.op == Op::kDisk) {
    Disk(event);
  } else if (event.phase == Phase::kInvoke) {
    Invoked(std::move(event));
  } else {
    Answered(event);
  }
}

void Watcher::Invoked(Event event) {
  listed_.reset();
  const uint64_t index = requests_.size();
  open_[uint64_t{event.proc} << 40 | event.n] = index;
  if (event.op == Op::kEnqueue) {
    for (const JobEntry& spec : event.jobs) {
      Senders& senders = by_payload_.try_emplace(spec.payload, Senders{index, index}).first->second;
      senders.last = index;
    }
  }
  requests_.push_back({.event = std::move(event), .answer = std::nullopt});
  Sent(requests_.back());
}

// From here on the request may have taken effect, whatever becomes of its answer.
void Watcher::Sent(const Request& request) {
  const Event& event = request.event;
  if (event.jobs.empty() || event.op == Op::kEnqueue || event.op == Op::kLease) {
    return;
  }
  if (event.op == Op::kShow) {
    return;
  }
  const JobEntry& entry = event.jobs[0];
  const auto found = jobs_.find(IdOf(entry));
  if (found == jobs_.end()) {
    return;
  }
  WatchedJob& job = found->second;
  if (IsMove(event)) {
    MoveSent(&job, entry, event);
  }
  End* end = event.op == Op::kAck      ? &job.ack
             : event.op == Op::kCancel ? &job.cancel
             : event.op == Op::kBury   ? &job.bury
                                       : nullptr;
  if (end != nullptr && !end->asked) {
    end->asked = At(event);
  }
  job.cancels += event.op == Op::kCancel ? 1 : 0;
  if (event.op == Op::kKick) {
    KickSent(&job);
  } else if (event.op == Op::kBury) {
    job.revived = false;
    job.bury_untold = job.bury_untold || job.kicks_open > 0;
  }
  if (!job.last || job.last->token != entry.token) {
    return;
  }
  if (event.op == Op::kExtend && entry.lease != kNotSet) {
    job.last->lease_until = std::min(job.last->lease_until, event.t + entry.lease);
  } else if (event.op != Op::kExtend && !job.last->given_back) {
    job.last->given_back = At(event);
  }
}

// From here on it may be no dead job any more, and at its first attempt again.
void Watcher::KickSent(WatchedJob* job) {
  job->bury_untold = job->bury_untold || (job->bury.asked && !job->bury.done);
  job->bury = {};
  ++job->kicks;
  ++job->kicks_open;
  job->deliveries_counted = 0;
  job->told.reset();
  if (job->last) {
    job->last->attempt = 0;
  }
}

void Watcher::KickAnswered(const Request& request, const Event& answer) {
  MoveAnswered(request.event, answer);
  const auto found = jobs_.find(IdOf(request.event.jobs.at(0)));
  if (found == jobs_.end() || found->second.kicks_open == 0) {
    return;
  }
  WatchedJob& job = found->second;
  --job.kicks_open;
  job.kicked = At(answer);
  const Moment sent = At(request.event);
  if (answer.phase == Phase::kOk && job.ack.done && *job.ack.done < sent) {
    Fail("I8", answer.line, Name(request.event.jobs[0].id) + " is kicked after it was acked");
  } else if (answer.phase == Phase::kOk && job.cancel.done && *job.cancel.done < sent) {
    Fail("I5", answer.line, Name(request.event.jobs[0].id) + " is kicked after it was cancelled");
  }
  job.revived = answer.phase == Phase::kOk && !job.bury.asked && !job.bury_untold;
}

void Watcher::Answered(const Event& event) {
  const auto open = open_.find(uint64_t{event.proc} << 40 | event.n);
  if (open == open_.end()) {
    return Fail("I11", event.line, "an answer to a request that was never sent");
  }
  Request& request = requests_[open->second];
  open_.erase(open);
  request.answer = event.phase;
  NoteAnswer(event);
  if (event.phase == Phase::kUnknown) {
    ++verdict_.unknown;
    unknown_leases_ += request.event.op == Op::kLease ? 1U : 0U;
    return;
  }
  switch (request.event.op) {
    case Op::kEnqueue:
      if (event.phase == Phase::kOk) {
        Enqueued(&request, event);
      }
      return;
    case Op::kLease:
      for (const JobEntry& entry : event.jobs) {
        Delivered(request, event, entry);
      }
      return;
    case Op::kAck:
    case Op::kNack:
    case Op::kBury:
    case Op::kExtend:
      return LeaseOpAnswered(request, event);
    case Op::kCancel:
      return CancelAnswered(request, event);
    case Op::kShow:
      return Shown(request, event);
    case Op::kReschedule:
      return MoveAnswered(request.event, event);
    case Op::kKick:
      return KickAnswered(request, event);
    case Op::kNone:
    case Op::kKill:
    case Op::kFinal:
    case Op::kConfig:
    case Op::kDisk:
      return;
  }
}

// From here on the weaker of both due times is promised.
void Watcher::MoveSent(WatchedJob* job, const JobEntry& spec, const Event& invoke) {
  job->moves_overlap = job->moves_overlap || job->moves_open > 0;
  ++job->moves_open;
  job->promise = Weaker(job->promise, PromiseOf(spec, invoke));
}

// One that was never answered stays open: it may have been the last to take effect.
void Watcher::MoveAnswered(const Event& invoke, const Event& answer) {
  const auto found = jobs_.find(IdOf(invoke.jobs.at(0)));
  if (found == jobs_.end() || found->second.moves_open == 0) {
    return;
  }
  WatchedJob& job = found->second;
  if (answer.phase == Phase::kOk && !job.moves_overlap) {
    job.weakest = job.moved ? Weaker(job.weakest, job.promise) : job.promise;
    job.moved = At(answer);
    job.moved_seq = answer.seq;
    job.promise = PromiseOf(invoke.jobs[0], invoke);
  }
  --job.moves_open;
  job.moves_overlap = job.moves_overlap && job.moves_open > 0;
}

void Watcher::Enqueued(Request* request, const Event& answer) {
  const Event& invoke = request->event;
  if (answer.jobs.size() != invoke.jobs.size()) {
    return Fail("I12", answer.line, "a batch is answered with another number of jobs");
  }
  for (size_t i = 0; i < invoke.jobs.size(); ++i) {
    const JobEntry& spec = invoke.jobs[i];
    const uint64_t id = answer.jobs[i].id;
    if (!spec.key.empty()) {
      CheckKey(spec, id, invoke, answer);
    }
    const auto [found, is_new] = jobs_.try_emplace(id);
    WatchedJob& job = found->second;
    if (!is_new && job.payload != spec.payload) {
      Fail("I11", answer.line, Name(id) + " is given for two different requests");
    }
    if (!is_new && job.known) {
      continue;
    }
    ++verdict_.enqueued;
    job.known = At(answer);
    job.payload = spec.payload;
    job.max_attempts = spec.max_attempts;
    if (is_new && !answer.jobs[i].existed) {
      job.promise = PromiseOf(spec, invoke);
    }
  }
}

void Watcher::CheckKey(const JobEntry& spec,
                       uint64_t id,
                       const Event& invoke,
                       const Event& answer) {
  const std::string content = ContentOf(spec);
  const auto [found, is_new] = keys_.try_emplace({spec.queue, spec.key});
  WatchedKey& known = found->second;
  if (!is_new && known.id != id) {
    const WatchedJob& job = jobs_[known.id];
    const auto ended = job.ack.asked ? job.ack.asked : job.cancel.asked;
    const bool same = known.content == content;
    const bool live = !ended || *ended > At(answer);
    const bool retained = same && key_retention_ != kNotSet && ended &&
                          ended->boot == answer.boot && answer.t < ended->t + key_retention_;
    if (live || retained) {
      Fail("I10",
           answer.line,
           "key " + spec.key + " names " + Name(id) + " and " + Name(known.id) +
               (live ? ", which is not finished" : ", which is within its retention"));
    }
  } else if (!is_new && known.content != content) {
    Fail("I10", answer.line, Name(id) + " is given for other content under its key");
  }
  if (is_new || known.answered < At(invoke) || known.id == id) {
    known = {.id = id, .content = content, .answered = At(answer)};
  }
}

// A job that was seen. One whose enqueue has no answer is found by its payload.
WatchedJob* Watcher::Surface(uint64_t id, const JobEntry& entry, uint64_t line) {
  const auto [found, is_new] = jobs_.try_emplace(id);
  WatchedJob& job = found->second;
  if (is_new) {
    const auto sent = by_payload_.find(entry.payload);
    if (sent == by_payload_.end()) {
      Fail("I11", line, Name(id) + " was never enqueued");
    } else {
      const Event& invoke = requests_[sent->second.first].event;
      for (const JobEntry& spec : invoke.jobs) {
        if (spec.payload == entry.payload) {
          job.promise = PromiseOf(spec, invoke);
          job.max_attempts = spec.max_attempts;
        }
      }
    }
    job.payload = entry.payload;
  } else if (!entry.payload.empty() && job.payload != entry.payload) {
    Fail("I11", line, Name(id) + " has another payload than it was enqueued with");
  }
  return &job;
}

void Watcher::Delivered(const Request& request, const Event& answer, const JobEntry& entry) {
  ++verdict_.delivered;
  WatchedJob& job = *Surface(entry.id, entry, answer.line);
  Delivery now{.invoked = At(request.event),
               .answered = At(answer),
               .seq = answer.seq,
               .attempt = entry.attempt,
               .lease_until = entry.lease == kNotSet ? INT64_MIN : request.event.t + entry.lease,
               .token = entry.token};
  CheckPromise(job, request.event, answer, entry);
  CheckEnded(job, now, answer, entry.id);
  CheckRepeated(job, now, answer, entry.id);
  if (job.max_attempts != 0 && entry.attempt > job.max_attempts) {
    Fail("I13",
         answer.line,
         Name(entry.id) + " is handed out for the " + std::to_string(entry.attempt) +
             "th time; it has " + std::to_string(job.max_attempts) + " attempts");
  }
  ++job.deliveries;
  CountTold(&job, now);
  job.attempt_max = std::max(job.attempt_max, entry.attempt);
  KeepLast(&job, std::move(now));
}

void Watcher::CountTold(WatchedJob* job, const Delivery& now) const {
  if (now.attempt == 0) {
    return;
  }
  const bool may_repeat = job->told && KilledBetween(std::min(job->told->first, now.invoked),
                                                     std::max(job->told->second, now.answered));
  job->deliveries_counted += may_repeat ? 0U : 1U;
  job->told = {now.invoked, now.answered};
}

// Of two that overlap the attempts tell which came later, unless a kill or a kick may have come in
// between.
void Watcher::KeepLast(WatchedJob* job, Delivery now) const {
  const bool overlap = job->last && now.invoked <= job->last->answered;
  if (job->kicks_open > 0 || (job->kicked && now.invoked <= *job->kicked) ||
      (overlap && KilledBetween(std::min(job->last->invoked, now.invoked),
                                std::max(job->last->answered, now.answered)))) {
    now.attempt = 0;
  }
  if (overlap && (job->last->may_not_be_last || job->last->attempt == 0 || now.attempt == 0)) {
    now.may_not_be_last = true;
    now.lease_until = INT64_MIN;
  } else if (job->last && job->last->attempt > now.attempt && now.attempt != 0) {
    return;
  }
  job->last = std::move(now);
}

void Watcher::CheckPromise(const WatchedJob& job,
                           const Event& invoke,
                           const Event& answer,
                           const JobEntry& entry) {
  if (entry.late != kNotSet) {
    lateness_.push_back(entry.late);
    if (entry.late < 0) {
      Fail("I2", answer.line, Name(entry.id) + " was handed out before its due time");
    } else if (options_.lateness_max_ms != kNotSet && entry.late > options_.lateness_max_ms) {
      Fail("I4", answer.line, Name(entry.id) + " was " + std::to_string(entry.late) + " ms late");
    }
  }
  const bool may_precede_move =
      job.moved && At(invoke) <= *job.moved && !SeqAfter(answer.seq, job.moved_seq);
  const Promise& promise = may_precede_move ? job.weakest : job.promise;
  const bool early_by_boot = promise.not_before && promise.not_before->boot == answer.boot &&
                             At(answer) < *promise.not_before;
  const bool early_by_wall = promise.not_before_wall != kNotSet && answer.w != kNotSet &&
                             LatestWall(invoke, answer) < promise.not_before_wall;
  if (early_by_boot || early_by_wall) {
    Fail("I2", answer.line, Name(entry.id) + " was handed out earlier than it was promised");
  }
}

void Watcher::CheckEnded(const WatchedJob& job,
                         const Delivery& now,
                         const Event& answer,
                         uint64_t id) {
  const auto check = [&](const End& end, const char* invariant, const char* how) {
    if (end.done && (*end.done < now.invoked || SeqAfter(now.seq, end.seq))) {
      Fail(invariant, answer.line, Name(id) + " is handed out after it was " + how);
    }
  };
  check(job.cancel, "I5", "cancelled");
  check(job.ack, "I8", "acked");
  check(job.bury, "I13", "buried");
}

void Watcher::CheckRepeated(const WatchedJob& job,
                            const Delivery& now,
                            const Event& answer,
                            uint64_t id) {
  if (!job.last) {
    return;
  }
  const Delivery& last = *job.last;
  if (!now.token.empty() && now.token == last.token) {
    return Fail("I16", answer.line, Name(id) + " came twice under the same lease");
  }
  const auto over = [](const Delivery& first, const Delivery& second) {
    return (first.given_back && *first.given_back <= second.answered) ||
           first.invoked.boot != second.answered.boot || second.answered.t >= first.lease_until;
  };
  const bool killed =
      KilledBetween(std::min(last.invoked, now.invoked), std::max(last.answered, now.answered));
  if (!killed && !over(last, now) && !over(now, last)) {
    return Fail("I6", answer.line, Name(id) + " has two leases at the same time");
  }
  if (!killed && last.answered < now.invoked && now.attempt != 0 && now.attempt <= last.attempt) {
    Fail("I7",
         answer.line,
         Name(id) + " is handed out again as attempt " + std::to_string(now.attempt) +
             " after attempt " + std::to_string(last.attempt));
  }
}

void Watcher::LeaseOpAnswered(const Request& request, const Event& answer) {
  if (IsMove(request.event)) {
    MoveAnswered(request.event, answer);
  }
  const JobEntry& entry = request.event.jobs.at(0);
  const auto found = jobs_.find(entry.id);
  if (found == jobs_.end() || answer.phase != Phase::kOk) {
    return;
  }
  WatchedJob& job = found->second;
  const Moment sent = At(request.event);
  const Moment just_before{sent.boot, sent.t - 1};  // it may have died within the millisecond
  if (job.last && !job.last->may_not_be_last && job.last->answered < sent &&
      (job.last->token != entry.token || KilledBetween(job.last->answered, just_before))) {
    Fail("I9", answer.line, Name(entry.id) + ": an old lease was accepted");
  } else if (job.ack.done && *job.ack.done < sent) {
    Fail("I9", answer.line, Name(entry.id) + ": a lease was accepted after the ack");
  }
  if (request.event.op == Op::kAck) {
    verdict_.acked += job.ack.done ? 0U : 1U;
    Ended(&job.ack, job, answer, "I8");
  } else if (request.event.op == Op::kBury && !job.bury_untold) {
    Ended(&job.bury, job, answer, "I13");
  } else if (request.event.op == Op::kExtend && job.last && job.last->token == entry.token &&
             entry.lease != kNotSet) {
    job.last->lease_until = request.event.t + entry.lease;
  }
}

void Watcher::Ended(End* end, const WatchedJob& job, const Event& answer, const char* invariant) {
  if (!end->done) {
    end->done = At(answer);
    end->seq = answer.seq;
  }
  if (job.last && SeqAfter(job.last->seq, answer.seq)) {
    Fail(invariant, answer.line, "a hand-out rests on a later commit than the end of its job");
  }
}

// A read that began after a change was answered shows it.
void Watcher::Shown(const Request& request, const Event& answer) {
  const uint64_t id = request.event.jobs.at(0).id;
  const Moment asked = At(request.event);
  if (answer.phase == Phase::kFail) {
    const auto found = jobs_.find(id);
    const bool there = found != jobs_.end() && found->second.known &&
                       *found->second.known < asked && !found->second.ack.asked &&
                       !found->second.cancel.asked;
    if (there && answer.code == "not_found") {
      Fail("I15", answer.line, Name(id) + " is not shown, and nobody has ended it");
    }
    return;
  }
  const JobEntry& shown = answer.jobs.at(0);
  const WatchedJob& job = *Surface(id, shown, answer.line);
  for (const End* end : {&job.ack, &job.cancel}) {
    if (end->done && *end->done < asked && shown.state != "finished") {
      Fail("I15", answer.line, Name(id) + " is shown as " + shown.state + " after its end");
    }
  }
}

void Watcher::CancelAnswered(const Request& request, const Event& answer) {
  const uint64_t id = IdOf(request.event.jobs.at(0));
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) {
    return;
  }
  WatchedJob& job = found->second;
  if (answer.phase == Phase::kOk) {
    verdict_.cancelled += job.cancel.done ? 0U : 1U;
    if (job.ack.done && *job.ack.done < At(request.event)) {
      Fail("I8", answer.line, Name(id) + " is cancelled after it was acked");
    }
    return Ended(&job.cancel, job, answer, "I5");
  }
  if (answer.code != "leased" && answer.code != "not_found" && answer.code != "finished") {
    return Fail("I5", answer.line, "a cancel is answered with " + answer.code);
  }
  // Another one may have come first, whichever was sent first.
  const bool ended_before = job.ack.asked || job.cancel.done || job.cancels > 1;
  const bool was_known = job.known && *job.known < At(request.event);
  if (answer.code != "leased" && was_known && !ended_before) {
    Fail("I5", answer.line, Name(id) + " is said to be " + answer.code + " and nobody ended it");
  }
}

}  // namespace delayd::checker
