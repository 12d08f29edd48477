#include "daemon/http/http_session.h"

#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace delayd::http {
namespace {

// A lease may wait for an hour, and must not hold up the requests after it.
bool Waits(const engine::Command& command) {
  const auto* lease = std::get_if<engine::Lease>(&command);
  return lease != nullptr && lease->wait.count() != 0;
}

bool HasLargeAnswer(const engine::Command& command) {
  return std::holds_alternative<engine::Show>(command) ||
         std::holds_alternative<engine::List>(command) ||
         std::holds_alternative<engine::ListQueues>(command) ||
         std::holds_alternative<engine::LeaseJob>(command) ||
         (std::holds_alternative<engine::Lease>(command) && !Waits(command));
}

std::optional<Response> RefusalOf(const std::variant<Caller, Response>& admitted,
                                  const FoundRoute& route) {
  const auto* const refusal = std::get_if<Response>(&admitted);
  return refusal != nullptr ? std::optional(*refusal)
                            : Router::RefuseHead(route, std::get<Caller>(admitted).role);
}

}  // namespace

HttpSession::HttpSession(const ReaderOptions& reader, const Router& router)
    : reader_(reader, [this](const Request& head) { return RefuseHead(head); }), router_(router) {}

void HttpSession::Receive(std::string_view bytes) {
  if (!ended_) {
    reader_.Append(bytes);
    starved_ = false;
  }
}

void HttpSession::Judge(const Request& head) {
  FoundRoute route = Router::Find(head);
  judged_ = {.admitted = Admit(head, route), .route = std::move(route)};
}

std::variant<Caller, Response> HttpSession::Admit(const Request& head,
                                                  const FoundRoute& route) const {
  std::variant<Caller, Response> admitted = router_.Admit(peer_, head, route);
  const auto* const caller = std::get_if<Caller>(&admitted);
  if (caller == nullptr) {
    router_.NoteTurnedAway(peer_, "token_needed");
  } else if (!Router::HasRole(route, caller->role)) {
    router_.NoteTurnedAway(peer_, "role_needed");
  }
  return admitted;
}

// Before the body is read: a request that is not allowed is not worth the memory.
std::optional<Response> HttpSession::RefuseHead(const Request& head) {
  Judge(head);
  return RefusalOf(judged_->admitted, judged_->route);
}

std::optional<SessionRequest> HttpSession::Take(const Now& now, bool reads_only) {
  while (begun_ || (!ended_ && !full())) {
    if (at_once_ == kAnsweredAtOnceMax) {
      at_once_ = 0;
      return std::nullopt;  // there may be more
    }
    if (begun_ ? reads_only : !HasRequest(reads_only)) {
      return std::nullopt;
    }
    if (!begun_) {
      Begin();
    }
    if (!begun_) {
      continue;
    }
    std::optional<SessionRequest> request = ReadBegun(now);
    if (request || begun_) {
      return request;
    }
  }
  return std::nullopt;
}

// Whether the reader has a whole request that may be taken now.
bool HttpSession::HasRequest(bool reads_only) {
  switch (reader_.Next()) {
    case HttpReader::Event::kNeedMore:
      starved_ = true;
      put_off_ = reads_only && waits_for_room();
      return false;
    case HttpReader::Event::kContinue:
      starved_ = true;
      put_off_ = reads_only;
      continue_due_ = true;
      Flush();
      return false;
    case HttpReader::Event::kRefused:
      End(reader_.refusal());
      return false;
    case HttpReader::Event::kRequest:
      break;
  }
  put_off_ = reads_only && !reader_.is_read();
  return !put_off_;
}

// Gives the request its slot. If its caller is not admitted, it is answered on the spot.
void HttpSession::Begin() {
  continue_due_ = false;
  Begun& begun = begun_.emplace(Begun{.request = reader_.TakeRequest()});
  Request& request = begun.request;
  if (!judged_) {
    Judge(request);  // without a body, the reader did not call RefuseHead
  }
  Judged judged = *std::exchange(judged_, std::nullopt);
  begun.route = std::move(judged.route);
  Slot& slot = slots_.emplace_back(Slot{.route = begun.route.number,
                                        .head_only = request.method == "HEAD",
                                        .close = !request.keep_alive,
                                        .tells_keep_alive = request.is_http_1_0});
  ended_ = slot.close;
  if (const auto* refusal = std::get_if<Response>(&judged.admitted)) {
    // Guessing tokens takes a connection for each guess.
    ended_ = slot.close = true;
    begun_.reset();
    AnswerLast(*refusal);
    return;
  }
  auto& caller = std::get<Caller>(judged.admitted);
  request.role = caller.role;
  request.user = std::move(caller.user);
}

// None: it was answered on the spot, or is still begun.
std::optional<SessionRequest> HttpSession::ReadBegun(const Now& now) {
  Routed routed = router_.Route(begun_->request, begun_->route, now, &begun_->lines);
  if (std::holds_alternative<ReadOn>(routed)) {
    return std::nullopt;
  }
  Slot& slot = slots_.back();
  const uint64_t tag = first_tag_ + slots_.size() - 1;
  std::string authorization = std::move(begun_->request.authorization);
  begun_.reset();
  if (auto* order = std::get_if<Order>(&routed)) {
    slot.form = order->form;
    slot.large = HasLargeAnswer(order->command);
    large_ += slot.large ? 1U : 0U;
    slot.waits = Waits(order->command);
    if (slot.waits) {
      ++waiting_;
      slot.authorization = std::move(authorization);
      waiting_bytes_ += slot.authorization.size();
    }
    return SessionRequest{tag, std::move(order->command)};
  }
  if (auto* order = std::get_if<AdminOrder>(&routed)) {
    return SessionRequest{.tag = tag, .command = {}, .admin = std::move(order->command)};
  }
  AnswerLast(std::get<Response>(routed));
  ++at_once_;
  return std::nullopt;
}

void HttpSession::Answer(uint64_t tag, const engine::Reply& reply) {
  Slot* const slot = SlotOf(tag);
  const auto* const leased = std::get_if<engine::Leased>(&reply.body);
  if (leased != nullptr && (slot != &slots_.front() || !output_.empty())) {
    for (const JobView& job : leased->jobs) {
      slot->leases.push_back(*job.lease_token);
    }
  }
  AnswerSlot(slot, Router::Render(slot->form, reply));
}

void HttpSession::AnswerAdmin(uint64_t tag, const AdminAnswer& answer) {
  AnswerSlot(SlotOf(tag), Router::RenderAdmin(answer));
}

HttpSession::Slot* HttpSession::SlotOf(uint64_t tag) {
  DELAYD_CHECK(tag >= first_tag_);
  DELAYD_CHECK(tag - first_tag_ < slots_.size());
  return &slots_[static_cast<size_t>(tag - first_tag_)];
}

void HttpSession::AnswerSlot(Slot* slot, const Response& response) {
  DELAYD_CHECK(!slot->answered);
  large_ -= slot->large ? 1U : 0U;
  waiting_ -= slot->waits ? 1U : 0U;
  waiting_bytes_ -= slot->authorization.size();
  slot->authorization = std::string();
  Fill(slot, response);
  Flush();
}

std::vector<uint64_t> HttpSession::RefuseForbidden() {
  std::vector<std::pair<uint64_t, Response>> refusals;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (!slot.waits || slot.answered) {
      continue;
    }
    const FoundRoute route{.number = slot.route};
    const auto admitted = Admit({.authorization = slot.authorization}, route);
    if (std::optional<Response> refusal = RefusalOf(admitted, route)) {
      refusals.emplace_back(first_tag_ + i, *std::move(refusal));
    }
  }
  std::vector<uint64_t> tags;
  for (const auto& [tag, response] : refusals) {  // answers that go out leave slots_
    AnswerSlot(SlotOf(tag), response);
    tags.push_back(tag);
  }
  return tags;
}

void HttpSession::Stop() {
  ended_ = true;
  continue_due_ = false;
  if (!slots_.empty() && !slots_.back().answered) {
    slots_.back().close = true;
  }
}

// Input that waits for room is taken first; after that this is called again.
void HttpSession::InputEnded() {
  if (starved_) {
    Stop();
  }
}

void HttpSession::Refuse(const Status& why) {
  if (ended_ && !begun_) {
    return;
  }
  const Response response = why.code() == StatusCode::kDeadlineExceeded ? ProblemResponse(408, why)
                                                                        : ProblemResponse(why);
  if (begun_) {
    begun_.reset();
    ended_ = slots_.back().close = true;
    AnswerLast(response);
  } else {
    End(response);
  }
  reader_.Drop();
}

std::vector<LeaseToken> HttpSession::TakeUntold() {
  std::vector<LeaseToken> untold;
  for (const Unsent& answer : unsent_) {
    untold.insert(untold.end(), answer.leases.begin(), answer.leases.end());
  }
  unsent_.clear();
  for (Slot& slot : slots_) {
    untold.insert(untold.end(), slot.leases.begin(), slot.leases.end());
    slot.leases.clear();
  }
  return untold;
}

// Leases may wait for an hour, and a client that leaves meanwhile must not be given their jobs.
// Over TCP only a read notices that it has left.
bool HttpSession::wants_input() const {
  if (full()) {
    return ended_ || (waiting_ > 0 && reader_.buffered_bytes() < kWaitingInputMax);
  }
  return ended_ || starved_ || reader_.buffered_bytes() < kWaitingInputMax;
}

bool HttpSession::has_more() const {
  return begun_ || (!ended_ && !full() && !starved_);
}

std::string_view HttpSession::output() const {
  return output_.unsent();
}

void HttpSession::Sent(size_t bytes) {
  output_.Sent(bytes);
  sent_bytes_ += bytes;
  std::erase_if(unsent_, [this](const Unsent& answer) { return answer.begin < sent_bytes_; });
}

bool HttpSession::finished() const {
  return ended_ && slots_.empty();
}

Session::Phase HttpSession::phase() const {
  if (!slots_.empty() || !output().empty() || (put_off_ && !ended_)) {
    return Phase::kWorking;
  }
  switch (reader_.phase()) {
    case HttpReader::Phase::kHead:
      return Phase::kHead;
    case HttpReader::Phase::kBody:
      return Phase::kBody;
    case HttpReader::Phase::kIdle:
    case HttpReader::Phase::kRefused:
      break;
  }
  return Phase::kIdle;
}

void HttpSession::Fill(Slot* slot, const Response& response) {
  router_.Count(slot->route, response.status);
  const std::string_view connection = slot->close              ? "close"
                                      : slot->tells_keep_alive ? "keep-alive"
                                                               : "";
  AppendResponse(response, router_.date(), slot->head_only, connection, &slot->text);
  slot->answered = true;
  held_bytes_ += slot->text.size();
}

void HttpSession::AnswerLast(const Response& response) {
  Fill(&slots_.back(), response);
  Flush();
}

// An answer goes out only after the answers to all requests before it.
void HttpSession::Flush() {
  while (!slots_.empty() && slots_.front().answered) {
    std::string& text = slots_.front().text;
    held_bytes_ -= text.size();
    if (!output_.empty() && !slots_.front().leases.empty()) {
      unsent_.push_back({sent_bytes_ + output_.size(), std::move(slots_.front().leases)});
    }
    if (output_.empty() && text.size() > OutgoingBytes::kTrimBytes) {
      *output_.tail() = std::move(text);
    } else {
      output_.tail()->append(text);
    }
    slots_.pop_front();
    ++first_tag_;
  }
  if (continue_due_ && slots_.empty()) {
    output_.tail()->append("HTTP/1.1 100 Continue\r\n\r\n");
    continue_due_ = false;
  }
}

void HttpSession::End(const Response& response) {
  ended_ = true;
  continue_due_ = false;
  slots_.push_back({.route = judged_ ? judged_->route.number : Router::RouteNames().size(),
                    .head_only = reader_.is_head(),
                    .close = true});
  AnswerLast(response);
}

}  // namespace delayd::http
