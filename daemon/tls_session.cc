#include "daemon/tls_session.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/time.h"

namespace delayd {

namespace {

// Above this nothing more is encrypted, so that output which the client does not read is held once.
constexpr size_t kEncipheredBytes = size_t{64} * 1024;

constexpr Millis kEndsSoon{std::chrono::hours(14 * 24)};
// "Ends soon" is at most the last fifth of a certificate's life: one that is valid for a week is
// renewed within days.
constexpr int kPartThatIsEnd = 5;

}  // namespace

Status TlsDoor::Load(const PlaceOf& place_of) {
  DELAYD_ASSIGN_OR_RETURN(protocol::TlsContext::Ptr context, Read(place_of));
  Show(std::move(context));
  return OkStatus();
}

StatusOr<protocol::TlsContext::Ptr> TlsDoor::Read(const PlaceOf& place_of) const {
  bool is_key = false;
  StatusOr<protocol::TlsContext::Ptr> context =
      protocol::TlsContext::ForServer(certificate_file_, key_file_, &is_key);
  if (!context.ok()) {
    return context.status().WithContext(place_of(is_key ? "tls.key" : "tls.certificate"));
  }
  return context;
}

void TlsDoor::Show(protocol::TlsContext::Ptr context) {
  context_ = std::move(context);
  const WallTime end = context_->certificate_end();
  figures_.certificate_end = end;
  begins_ = context_->certificate_begin();
  ends_soon_from_ = end - std::min(kEndsSoon, (end - begins_) / kPartThatIsEnd);
  noted_ = Age::kValid;
}

TlsDoor::Age TlsDoor::AgeAt(WallTime now) const {
  if (!figures_.certificate_end || now < ends_soon_from_) {
    return now < begins_ ? Age::kNotYetValid : Age::kValid;
  }
  return now < *figures_.certificate_end ? Age::kEndsSoon : Age::kExpired;
}

Status TlsDoor::CheckEnd(WallTime now) const {
  switch (AgeAt(now)) {
    case Age::kValid:
      break;
    case Age::kEndsSoon:
      return FailedPrecondition(
          "the certificate " + certificate_file_ + " ends at " +
              FormatUtc(*figures_.certificate_end) +
              ", and clients will refuse it; renew it, then: systemctl reload delayd",
          "certificate_ends_soon");
    case Age::kExpired:
      return FailedPrecondition("the certificate " + certificate_file_ + " has ended at " +
                                    FormatUtc(*figures_.certificate_end) +
                                    ", so clients refuse it; renew it, then: systemctl reload "
                                    "delayd",
                                "certificate_expired");
    case Age::kNotYetValid:
      return FailedPrecondition(
          "the certificate " + certificate_file_ + " is not valid before " + FormatUtc(begins_) +
              ", so clients refuse it; put the one before in its place, or this machine's clock "
              "right, then: systemctl reload delayd",
          "certificate_not_yet_valid");
  }
  return OkStatus();
}

Status TlsDoor::NoteEnd(WallTime now) {
  const Age age = AgeAt(now);
  return age > std::exchange(noted_, age) ? CheckEnd(now) : OkStatus();
}

std::unique_ptr<Session> TlsDoor::Wrap(std::unique_ptr<Session> inner) {
  DELAYD_CHECK(context_ != nullptr);
  return std::make_unique<TlsSession>(context_, std::move(inner), &figures_);
}

// An alert record: fatal, internal_error (RFC 8446, 6.2).
std::string_view TlsDoor::NoRoom() {
  static constexpr std::array<char, 7> kAlert = {0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x50};
  return {kAlert.data(), kAlert.size()};
}

void TlsSession::Receive(std::string_view bytes) {
  if (ended_) {
    return;
  }
  // A handshake begins with a record type, an HTTP request with the first letter of a method.
  if (!std::exchange(begun_, true) && bytes.front() >= 'A' && bytes.front() <= 'Z') {
    AnswerInTheClear();
    return;
  }
  std::string plain;
  const Status status = channel_.Receive(bytes, &plain);
  if (!greeted_ && channel_.established()) {
    greeted_ = true;
    ++figures_->handshakes;
  }
  if (!plain.empty()) {
    inner_->Receive(plain);
  }
  if (!status.ok()) {
    Fail(status.message());
  }
  Pump();
}

std::optional<SessionRequest> TlsSession::Next(const Now& now) {
  return ended_ ? std::nullopt : Pass(inner_->Next(now));
}

std::optional<SessionRequest> TlsSession::NextRead(const Now& now) {
  return ended_ ? std::nullopt : Pass(inner_->NextRead(now));
}

std::optional<SessionRequest> TlsSession::Pass(std::optional<SessionRequest> request) {
  if (!request && channel_.peer_closed() && inner_->wants_input() && !inner_->has_more()) {
    inner_->InputEnded();
  }
  Pump();
  return request;
}

void TlsSession::Answer(uint64_t tag, const engine::Reply& reply) {
  inner_->Answer(tag, reply);
  Pump();
}

void TlsSession::AnswerAdmin(uint64_t tag, const AdminAnswer& answer) {
  inner_->AnswerAdmin(tag, answer);
  Pump();
}

std::vector<uint64_t> TlsSession::RefuseForbidden() {
  std::vector<uint64_t> refused = inner_->RefuseForbidden();
  Pump();
  return refused;
}

void TlsSession::Stop() {
  if (is_cut()) {
    Fail("the daemon is being stopped");
    return;
  }
  inner_->Stop();
  Pump();
}

void TlsSession::InputEnded() {
  inner_->InputEnded();
  Pump();
}

void TlsSession::Refuse(const Status& why) {
  if (!greeted_ || is_cut()) {
    Fail(why.message());
    return;
  }
  inner_->Refuse(why);
  Pump();
}

bool TlsSession::wants_input() const {
  return ended_ || (inner_->wants_input() && channel_.output().size() < kEncipheredBytes);
}

void TlsSession::Sent(size_t bytes) {
  if (in_the_clear_) {
    inner_->Sent(bytes);
    return;
  }
  channel_.Sent(bytes);
  Pump();
}

Session::Phase TlsSession::phase() const {
  if (is_cut() || (!greeted_ && !ended_)) {
    return Phase::kHead;
  }
  return channel_.output().empty() ? inner_->phase() : Phase::kWorking;
}

void TlsSession::AnswerInTheClear() {
  ++figures_->failed;
  figures_->last_failed.Note(peer_, "it spoke HTTP without TLS");
  in_the_clear_ = true;
  ended_ = true;
  inner_->Refuse(InvalidArgument("TLS is spoken here; ask with https://", "bad_request"));
}

void TlsSession::Fail(std::string_view cause) {
  ++figures_->failed;
  figures_->last_failed.Note(peer_, cause);
  inner_->Stop();
  ended_ = true;
}

void TlsSession::Pump() {
  while (!ended_ && channel_.established() && channel_.output().size() < kEncipheredBytes &&
         !inner_->output().empty()) {
    const std::string_view piece = inner_->output().substr(0, kEncipheredBytes);
    if (const Status sent = channel_.Send(piece); !sent.ok()) {
      Fail(sent.message());
      return;
    }
    inner_->Sent(piece.size());
  }
  if (!ended_ && inner_->finished() && inner_->output().empty()) {
    channel_.Close();
    ended_ = true;
  }
}

}  // namespace delayd
