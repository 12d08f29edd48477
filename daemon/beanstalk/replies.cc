// The engine's answers in the words of the protocol.
#include <utility>

#include "daemon/beanstalk/session.h"
#include "daemon/beanstalk/stats.h"
#include "protocol/beanstalk/reply_writer.h"

namespace delayd::beanstalk {
namespace {

// The reply to a refused or failed command whose verb has no reply of its own for it.
std::string_view WordOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kNotFound:
    case StatusCode::kFailedPrecondition:
      return reply::kNotFound;
    case StatusCode::kAlreadyExists:
      return reply::kKeyConflict;
    case StatusCode::kResourceExhausted:
      return reply::kOutOfMemory;
    case StatusCode::kInvalidArgument:
      return reply::kBadFormat;
    default:
      return reply::kInternalError;
  }
}

bool IsPut(Verb verb) {
  return verb == Verb::kPut || verb == Verb::kPutMs || verb == Verb::kPutKey ||
         verb == Verb::kPutBatch;
}

// "INSERTED id" or, if the same job already has the key, "EXISTS id".
void AppendEnqueued(const engine::EnqueuedIds::Item& item, std::string* text) {
  AppendLine(item.existed ? "EXISTS" : "INSERTED", ToInt(item.id), text);
}

// A job or, in answer to reserve-batch, an OK followed by all of them.
void AppendReserved(Verb verb, const std::vector<JobView>& jobs, std::string* text) {
  const auto append = [&jobs](std::string* out) {
    for (const JobView& job : jobs) {
      AppendJob("RESERVED", ToInt(job.id), *job.payload, out);
    }
  };
  if (verb != Verb::kReserveBatch) {
    append(text);
    return;
  }
  std::string body;
  append(&body);
  AppendOk(body, text);
}

}  // namespace

std::string_view ReplyTo(Refusal refusal) {
  switch (refusal) {
    case Refusal::kUnknownCommand:
      return reply::kUnknownCommand;
    case Refusal::kJobTooBig:
      return reply::kJobTooBig;
    case Refusal::kExpectedCrlf:
      return reply::kExpectedCrlf;
    case Refusal::kBadFormat:
    case Refusal::kNone:
      break;
  }
  return reply::kBadFormat;
}

bool BeanstalkSession::Render(Slot* slot, const engine::Reply& reply, std::string* text) {
  const Status& status = slot->deletion == nullptr ? reply.status : slot->deletion->status();
  if (status.code() == StatusCode::kUnknown) {
    FallSilent();
    return true;
  }
  switch (slot->verb) {
    case Verb::kReserve:
    case Verb::kReserveWithTimeout:
    case Verb::kReserveJob:
    case Verb::kReserveBatch:
      return RenderReserved(slot->verb, reply, text);
    case Verb::kStats:
    case Verb::kStatsTube:
    case Verb::kStatsJob:
      RenderLook(slot, reply, text);
      return true;
    case Verb::kListTubes:
      return RenderTubes(reply, text);
    default:
      break;
  }
  if (status.ok()) {
    RenderDone(*slot, reply, text);
  } else {
    RenderFailed(*slot, status, text);
  }
  return true;
}

bool BeanstalkSession::RenderReserved(Verb verb, const engine::Reply& reply, std::string* text) {
  const auto* leased = std::get_if<engine::Leased>(&reply.body);
  if (!reply.status.ok()) {
    text->append(WordOf(reply.status));
  } else if (!leased->jobs.empty()) {
    BecomeWorker();
    for (const JobView& job : leased->jobs) {
      reservations_.Add(*job.lease_token, job.lease_ends, job.lease);
    }
    AppendReserved(verb, leased->jobs, text);
  } else if (input_ended_) {
    text->append(reply::kTimedOut);
  } else if (ended()) {
    // A plain reserve has no timeout, and workers fail on one. Without a reply they reconnect; no
    // later reply follows that could be taken for it.
    text->append(verb == Verb::kReserve ? std::string_view() : reply::kTimedOut);
  } else if (waiting_->on_empty == OnEmpty::kAskAgain) {
    waiting_->ask_again = true;
    return false;
  } else {
    text->append(waiting_->on_empty == OnEmpty::kDeadlineSoon ? reply::kDeadlineSoon
                                                              : reply::kTimedOut);
  }
  StopWaiting();
  return true;
}

void BeanstalkSession::RenderFailed(const Slot& slot, const Status& status, std::string* text) {
  if (slot.verb == Verb::kDeleteKey && status.reason() == "leased") {
    text->append(reply::kJobReserved);
  } else if (IsPut(slot.verb) && status.reason() == "draining") {
    text->append(reply::kDraining);
  } else if (slot.verb == Verb::kKick && status.code() == StatusCode::kNotFound) {
    AppendLine("KICKED", uint64_t{0}, text);  // nothing was ever put into this tube
  } else {
    text->append(WordOf(status));
  }
}

void BeanstalkSession::RenderDone(const Slot& slot, const engine::Reply& reply, std::string* text) {
  switch (slot.verb) {
    case Verb::kPut:
    case Verb::kPutMs:
    case Verb::kPutKey:
      AppendEnqueued(std::get<engine::EnqueuedIds>(reply.body).items.front(), text);
      break;
    case Verb::kPutBatch: {
      std::string lines;
      for (const engine::EnqueuedIds::Item& item :
           std::get<engine::EnqueuedIds>(reply.body).items) {
        AppendEnqueued(item, &lines);
      }
      AppendOk(lines, text);
      break;
    }
    case Verb::kDeleteBatch: {
      std::string lines;
      for (const bool deleted : slot.deletion->TakeDeleted()) {
        lines.append(deleted ? "DELETED\n" : "NOT_FOUND\n");
      }
      AppendOk(lines, text);
      break;
    }
    case Verb::kDelete:
      if (slot.deletion != nullptr && !slot.deletion->TakeDeleted().front()) {
        text->append(reply::kNotFound);
        break;
      }
      [[fallthrough]];
    case Verb::kDeleteKey:
      text->append(reply::kDeleted);
      break;
    case Verb::kRelease: {
      // A job enqueued over HTTP may have used up its attempts.
      const bool died = std::get<Indirect<JobView>>(reply.body)->state == JobState::kDead;
      text->append(died ? reply::kBuried : reply::kReleased);
      break;
    }
    case Verb::kBury:
      text->append(reply::kBuried);
      break;
    case Verb::kTouch:
      text->append(reply::kTouched);
      break;
    case Verb::kKick:
      AppendLine("KICKED", std::get<engine::Kicked>(reply.body).count, text);
      break;
    case Verb::kKickJob:
      text->append(reply::kKicked);
      break;
    case Verb::kPauseTube:
      text->append(reply::kPaused);
      break;
    default: {
      const JobView& job = *std::get<Indirect<JobView>>(reply.body);
      if (job.state == JobState::kFinished) {
        text->append(reply::kNotFound);  // kept as history, which this protocol does not have
      } else {
        AppendJob("FOUND", ToInt(job.id), job.payload.value_or(std::string()), text);
      }
    }
  }
}

void BeanstalkSession::RenderLook(Slot* slot, const engine::Reply& reply, std::string* text) {
  const std::string name = std::exchange(slot->text, std::string());
  if (!reply.status.ok() &&
      (slot->verb != Verb::kStatsTube || reply.status.code() != StatusCode::kNotFound)) {
    text->append(WordOf(reply.status));
    return;
  }
  switch (slot->verb) {
    case Verb::kStats:
      AppendOk(StatsOf(*hub_, *std::get<Indirect<engine::StatsView>>(reply.body), now_), text);
      break;
    case Verb::kStatsJob:
      if (std::get<Indirect<JobView>>(reply.body)->state == JobState::kFinished) {
        text->append(reply::kNotFound);
      } else {
        AppendOk(StatsOfJob(*std::get<Indirect<JobView>>(reply.body), now_), text);
      }
      break;
    default: {
      const auto* queues = std::get_if<engine::QueueList>(&reply.body);
      const engine::QueueView* queue = queues == nullptr ? nullptr : &queues->queues.front();
      const std::optional<std::string> stats = StatsOfTube(*hub_, name, queue);
      stats ? AppendOk(*stats, text) : static_cast<void>(text->append(reply::kNotFound));
    }
  }
}

// One page at a time, so that other clients are served between pages.
bool BeanstalkSession::RenderTubes(const engine::Reply& reply, std::string* text) {
  if (reply.status.ok()) {
    const auto& page = std::get<engine::QueueList>(reply.body);
    tubes_->Add(page);
    if (!page.next_cursor.empty()) {
      also_ = SessionRequest{last_tag(), engine::ListQueues{.cursor = page.next_cursor}};
      return false;
    }
    AppendOk(tubes_->Text(*hub_), text);
  } else {
    text->append(WordOf(reply.status));
  }
  tubes_.reset();
  return true;
}

}  // namespace delayd::beanstalk
