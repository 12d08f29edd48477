// daemon/http/http_session.h — one HTTP/1.1 connection without its socket.
//
// What:    requests may be pipelined: all that have arrived run at once, and the answers go out in
//          the order of the requests, whichever is ready first. A refused request ends the
//          connection behind its answer; so does "Connection: close".
// Units:   bytes.
// Errors:  none; see daemon/session.h.
// Threads: the core thread.
// Cost:    at most kRequestsMax answers are waited for, and kOutputBytesMax are kept for a client
//          that does not read, or for an answer that must go out before them; then input is left in
//          the socket, but behind leases that wait only from kWaitingInputMax on. A client that may
//          ask nothing has no body read.
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

#include "base/outgoing_bytes.h"
#include "daemon/http/http_reader.h"
#include "daemon/http/router.h"
#include "daemon/session.h"

namespace delayd::http {

class HttpSession final : public Session {
 public:
  static constexpr size_t kRequestsMax = 256;
  static constexpr size_t kOutputBytesMax = size_t{1} << 20;
  // Of requests whose answers may be large: their bytes are there only when all have been answered.
  static constexpr size_t kLargeAnswersMax = 4;
  // Lease requests that may wait: each may get a large answer at any time, and an hour may pass
  // before that, so more of them have to be allowed.
  static constexpr size_t kWaitingLeasesMax = 16;
  // Of requests that need no engine, one after the other: a page of /metrics may take milliseconds,
  // and a HEAD of it fills no output.
  static constexpr size_t kAnsweredAtOnceMax = 8;
  // Of requests that wait to be taken.
  static constexpr size_t kWaitingInputMax = size_t{64} * 1024;

  // Both must outlive the session.
  HttpSession(const ReaderOptions& reader, const Router& router);

  void SetPeer(Peer peer) override { peer_ = std::move(peer); }

  void Receive(std::string_view bytes) override;

  std::optional<SessionRequest> Next(const Now& now) override { return Take(now, false); }

  std::optional<SessionRequest> NextRead(const Now& now) override { return Take(now, true); }

  // A body is for a change, and not waited for either.
  bool waits_for_room() const override {
    return !ended_ && reader_.phase() == HttpReader::Phase::kBody;
  }

  void Answer(uint64_t tag, const engine::Reply& reply) override;
  void AnswerAdmin(uint64_t tag, const AdminAnswer& answer) override;
  void Stop() override;
  void InputEnded() override;
  void Refuse(const Status& why) override;

  bool wants_input() const override;
  bool has_more() const override;

  uint64_t requests() const override { return first_tag_ + slots_.size(); }

  size_t held_bytes() const override { return reader_.held_bytes() + held_bytes_ + output_.size(); }

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
    std::string text;  // once answered
  };

  bool full() const {
    return slots_.size() >= kRequestsMax || large_ >= kLargeAnswersMax ||
           waiting_ >= kWaitingLeasesMax || output_.size() + held_bytes_ >= kOutputBytesMax;
  }

  // What is known of the request that is being read, once its head is.
  struct Judged {
    std::variant<Caller, Response> admitted;
    FoundRoute route;
  };

  std::optional<SessionRequest> Take(const Now& now, bool reads_only);
  bool HasRequest(bool reads_only);
  std::optional<SessionRequest> Begin(const Now& now);
  void Judge(const Request& head);
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
  std::deque<Slot> slots_;
  uint64_t first_tag_ = 0;  // of slots_.front()
  size_t large_ = 0;        // large answers that are waited for
  size_t waiting_ = 0;      // leases that may wait and have no answer
  size_t at_once_ = 0;      // requests that were answered on the spot since others had their turn
  size_t held_bytes_ = 0;   // of answers that wait for one before them
  bool starved_ = true;     // the reader needs more input for the next request
  bool put_off_ = false;    // the next request, or its body, waits for room and not for the client
  bool ended_ = false;      // the last request has been taken
  bool continue_due_ = false;
  OutgoingBytes output_;
};

}  // namespace delayd::http
