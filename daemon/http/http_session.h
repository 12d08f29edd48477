// daemon/http/http_session.h — one HTTP/1.1 connection without its socket.
//
// What:    requests may be pipelined: all that have arrived run at once, and the answers go out in
//          the order of the requests, whichever is ready first. A refused request ends the
//          connection after its answer; so does "Connection: close".
// Units:   bytes.
// Errors:  none; see daemon/session.h.
// Threads: the core thread.
// Cost:    at most kRequestsMax answers may be pending, and about kOutputBytesMax bytes are kept
//          for a client that does not read, or behind an answer that must go out first. Beyond that
//          input stays in the socket; while leases wait, only from kWaitingInputMax on. No body is
//          read from a client without the necessary role.
// Source:  RFC 9112, section 9.3.2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/outgoing_bytes.h"
#include "daemon/http/http_reader.h"
#include "daemon/http/router.h"
#include "daemon/session.h"

namespace delayd::http {

class HttpSession final : public Session {
 public:
  static constexpr size_t kRequestsMax = 256;
  static constexpr size_t kOutputBytesMax = size_t{1} << 20;
  // Pending requests whose answers may be large: their size is known only with the answer.
  static constexpr size_t kLargeAnswersMax = 4;
  // Lease requests that may wait. Each may get a large answer at any time, but that may take an
  // hour, so more of them have to be allowed.
  static constexpr size_t kWaitingLeasesMax = 16;
  // Requests answered without the engine in one go. A page of /metrics may take milliseconds, and
  // the limit on output does not stop a HEAD of it.
  static constexpr size_t kAnsweredAtOnceMax = 8;
  // Bytes of requests that wait to be taken.
  static constexpr size_t kWaitingInputMax = size_t{64} * 1024;

  // Both must outlive the session.
  HttpSession(const ReaderOptions& reader, const Router& router);

  void SetPeer(Peer peer) override { peer_ = std::move(peer); }

  void Receive(std::string_view bytes) override;

  std::optional<SessionRequest> Next(const Now& now) override { return Take(now, false); }

  std::optional<SessionRequest> NextRead(const Now& now) override { return Take(now, true); }

  // A request with a body is a change, so the rest of its body is not read either.
  bool waits_for_room() const override {
    return begun_ || (!ended_ && reader_.phase() == HttpReader::Phase::kBody);
  }

  void Answer(uint64_t tag, const engine::Reply& reply) override;
  void AnswerAdmin(uint64_t tag, const AdminAnswer& answer) override;
  std::vector<uint64_t> RefuseForbidden() override;
  void Stop() override;
  void InputEnded() override;
  void Refuse(const Status& why) override;

  bool has_untaken() const override { return begun_ || (put_off_ && !ended_); }

  std::vector<LeaseToken> TakeUntold() override;

  bool wants_input() const override;
  bool has_more() const override;

  uint64_t requests() const override { return first_tag_ + slots_.size(); }

  size_t held_bytes() const override {
    return reader_.held_bytes() + (begun_ ? begun_->request.body.size() : 0) + waiting_bytes_ +
           held_bytes_ + output_.size();
  }

  std::string_view output() const override;
  void Sent(size_t bytes) override;
  bool finished() const override;
  Phase phase() const override;

 private:
  // The place of an answer in the order of answers.
  struct Slot {
    size_t route = 0;
    ReplyForm form{};
    bool head_only = false;
    bool close = false;
    bool tells_keep_alive = false;
    bool answered = false;
    bool large = false;
    bool waits = false;
    std::string authorization;       // while it waits: the token may be taken away
    std::string text;                // once answered
    std::vector<LeaseToken> leases;  // in `text`, while it waits for an answer before it
  };

  // An answer with leases in output_, of which not one byte has gone out yet.
  struct Unsent {
    uint64_t begin = 0;  // counted as sent_bytes_ is
    std::vector<LeaseToken> leases;
  };

  bool full() const {
    return slots_.size() >= kRequestsMax || large_ >= kLargeAnswersMax ||
           waiting_ >= kWaitingLeasesMax || output_.size() + held_bytes_ >= kOutputBytesMax;
  }

  // The caller and the route of the request being read, once its head has been read.
  struct Judged {
    std::variant<Caller, Response> admitted;
    FoundRoute route;
  };

  // A request that has its slot, but has not been read to its end: that takes a step or several,
  // between which others have their turn.
  struct Begun {
    Request request;
    FoundRoute route;
    protocol::JobSpecLines lines;
  };

  std::optional<SessionRequest> Take(const Now& now, bool reads_only);
  bool HasRequest(bool reads_only);
  void Begin();
  std::optional<SessionRequest> ReadBegun(const Now& now);
  void Judge(const Request& head);
  std::variant<Caller, Response> Admit(const Request& head, const FoundRoute& route) const;
  std::optional<Response> RefuseHead(const Request& head);
  Slot* SlotOf(uint64_t tag);
  void AnswerSlot(Slot* slot, const Response& response);
  void Fill(Slot* slot, const Response& response);
  void AnswerLast(const Response& response);
  void Flush();
  void End(const Response& response);

  HttpReader reader_;
  const Router& router_;
  Peer peer_;
  std::optional<Judged> judged_;
  std::optional<Begun> begun_;  // the last of slots_
  std::deque<Slot> slots_;
  uint64_t first_tag_ = 0;  // of slots_.front()
  size_t large_ = 0;        // pending large answers
  size_t waiting_ = 0;      // unanswered leases that may wait
  size_t at_once_ = 0;      // requests answered without the engine since Take last paused for them
  size_t waiting_bytes_ = 0;  // of the credentials of requests that wait
  size_t held_bytes_ = 0;     // of answers that wait for one before them
  bool starved_ = true;       // the reader needs more input for the next request
  bool put_off_ = false;      // the next request, or its body, waits for room, not for the client
  bool ended_ = false;        // the last request has been taken
  bool continue_due_ = false;
  OutgoingBytes output_;
  uint64_t sent_bytes_ = 0;     // of all answers so far
  std::vector<Unsent> unsent_;  // in the order of output_
};

}  // namespace delayd::http
