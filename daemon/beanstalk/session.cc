#include "daemon/beanstalk/session.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace delayd::beanstalk {
namespace {

constexpr size_t kFirstSlots = 4;
constexpr size_t kIdleSlots = 128;

// Replies with a job's payload or with names of tubes. The other reserves need no entry: a session
// never has two of them under way.
bool HasLargeReply(Verb verb) {
  switch (verb) {
    case Verb::kReserveJob:
    case Verb::kPeek:
    case Verb::kPeekReady:
    case Verb::kPeekDelayed:
    case Verb::kPeekBuried:
    case Verb::kListTubesWatched:
      return true;
    default:
      return false;
  }
}

// The hub's state is read when the answer comes, so no later command may be executed before that.
bool Counts(Verb verb) {
  return verb == Verb::kStats || verb == Verb::kStatsTube || verb == Verb::kListTubes;
}

}  // namespace

BeanstalkSession::BeanstalkSession(Hub* hub)
    : hub_(hub), reader_(hub->options().job_bytes_max), used_(hub->Use(kDefaultTube)) {
  Watch(kDefaultTube);
  ++hub_->connections;
  ++hub_->connections_total;
}

BeanstalkSession::~BeanstalkSession() {
  StopWaiting();
  hub_->Leave(used_);
  for (Tube* const tube : watched_) {
    Ignore(tube);
  }
  --hub_->connections;
  hub_->producers -= is_producer_ ? 1 : 0;
  hub_->workers -= is_worker_ ? 1 : 0;
}

void BeanstalkSession::SetPeer(Peer peer) {
  is_strange_ = !peer.known;
  const Access* access = hub_->options().access;
  if (access != nullptr &&
      (access->RoleOf(peer) < Role::kEnqueue || (!peer.known && access->has_tokens()))) {
    Stop();
  }
  if (access != nullptr) {
    quota_ = QuotaOf({.role = access->RoleOf(peer), .user = Access::UserOf(peer)},
                     hub_->options().user_jobs_max);
  }
}

void BeanstalkSession::Receive(std::string_view bytes) {
  if (!ended()) {
    reader_.Append(bytes);
    starved_ = false;
  }
}

std::optional<SessionRequest> BeanstalkSession::Next(const Now& now) {
  now_ = now;
  if (also_) {
    return std::exchange(also_, std::nullopt);
  }
  if (waiting_ && waiting_->ask_again) {
    waiting_->ask_again = false;
    return SessionRequest{waiting_->tag, OrderReserve(now)};
  }
  while (!ended() && !waiting_ && !full()) {
    const std::optional<Command> command = reader_.Next();
    if (!command) {
      starved_ = true;
      break;
    }
    if (std::optional<SessionRequest> request = Begin(*command, now)) {
      return request;
    }
  }
  // A reserve keeps the rest from being read, but there may be nothing left to read.
  starved_ = starved_ || reader_.Rest();
  return std::nullopt;
}

std::optional<SessionRequest> BeanstalkSession::Begin(const Command& command, const Now& now) {
  if (command.verb == Verb::kQuit && command.refusal == Refusal::kNone) {
    quit_ = true;
    return std::nullopt;
  }
  Slot* const slot = PushSlot(command.verb);
  std::string* const text = TextOf(slot);
  if (command.refusal != Refusal::kNone) {
    text->append(ReplyTo(command.refusal));
    Finish(slot);
    if (is_strange_ && command.verb == Verb::kNone) {
      Stop();
    }
    is_strange_ = false;
    return std::nullopt;
  }
  is_strange_ = false;
  hub_->Count(command.verb);
  if (std::optional<engine::Command> order = OrderOf(command, now, text)) {
    counting_ = Counts(command.verb);
    return SessionRequest{last_tag(), std::move(*order)};
  }
  Finish(slot);
  return std::nullopt;
}

BeanstalkSession::Slot* BeanstalkSession::PushSlot(Verb verb) {
  if (slots_.full()) {
    slots_.set_capacity(std::max(kFirstSlots, slots_.capacity() * 2));
  }
  slots_.push_back({.verb = verb});
  large_ += HasLargeReply(verb) ? 1U : 0U;
  return &slots_.back();
}

// Where this slot's reply is written: straight into the output if no slot is before it.
std::string* BeanstalkSession::TextOf(Slot* slot) {
  return slot == &slots_.front() ? output_.tail() : &slot->text;
}

void BeanstalkSession::Finish(Slot* slot) {
  slot->answered = true;
  held_bytes_ += slot->text.size();
  while (!slots_.empty() && slots_.front().answered) {
    const std::string& text = slots_.front().text;
    held_bytes_ -= text.size();
    if (!silent_) {
      output_.tail()->append(text);
    }
    large_ -= HasLargeReply(slots_.front().verb) ? 1U : 0U;
    slots_.pop_front();
    ++first_tag_;
  }
}

void BeanstalkSession::Answer(uint64_t tag, const engine::Reply& reply) {
  DELAYD_CHECK(tag >= first_tag_);
  DELAYD_CHECK(tag - first_tag_ < slots_.size());
  Slot& slot = slots_[static_cast<size_t>(tag - first_tag_)];
  DELAYD_CHECK(!slot.answered);
  if (slot.deletion != nullptr && !slot.deletion->Take(reply)) {
    return;
  }
  if (silent_ || Render(&slot, reply, TextOf(&slot))) {
    counting_ = counting_ && !Counts(slot.verb);
    Finish(&slot);
  }
}

void BeanstalkSession::StopWaiting() {
  if (waiting_ && waiting_->is_counted) {
    --hub_->waiting;
    for (Tube* const tube : watched_) {
      --tube->waiting;
    }
  }
  waiting_.reset();
}

// A missing reply means that the outcome is unknown. A later reply could be taken for the missing
// one.
void BeanstalkSession::FallSilent() {
  silent_ = true;
  quit_ = true;
}

void BeanstalkSession::Stop() {
  stopped_ = true;
}

void BeanstalkSession::InputEnded() {
  input_ended_ = true;
}

bool BeanstalkSession::wants_input() const {
  if (ended()) {
    return true;  // and dropped
  }
  return !full() && (starved_ || reader_.buffered_bytes() < kWaitingInputMax);
}

bool BeanstalkSession::has_more() const {
  if (also_ || (waiting_ && waiting_->ask_again)) {
    return true;
  }
  return !ended() && !waiting_ && !full() && !starved_;
}

bool BeanstalkSession::held_up() const {
  return (waiting_ || counting_ || large_ >= kLargeRepliesMax) && !ended() && !starved_;
}

std::string_view BeanstalkSession::output() const {
  return output_.unsent();
}

void BeanstalkSession::Sent(size_t bytes) {
  output_.Sent(bytes);
  if (output_.empty() && slots_.empty() && slots_.capacity() > kIdleSlots) {
    slots_.set_capacity(kFirstSlots);
  }
}

bool BeanstalkSession::finished() const {
  return slots_.empty() && (ended() || (input_ended_ && starved_));
}

}  // namespace delayd::beanstalk
