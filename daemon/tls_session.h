// daemon/tls_session.h — a session of any protocol, spoken through TLS.
//
// What:    stands between the server and the session inside: what the client says is deciphered on
//          its way in, answers are enciphered on their way out. The handshake counts as the head of
//          a request, so that a slow one is ended as a slow request is; so does a message behind it
//          of which only a part has come.
// Errors:  a client that does not speak TLS gets an alert and is closed; one that asks in the clear
//          is told so in the clear.
// Threads: the core thread.
// Cost:    holds one piece of enciphered answers beside what the session inside holds.
// Source:  docs/decisions/0077-tls.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/session.h"
#include "daemon/turned_away.h"
#include "protocol/tls.h"

namespace delayd {

struct TlsFigures {
  uint64_t handshakes = 0;
  uint64_t failed = 0;                      // handshakes, and channels that broke later
  TurnedAway last_failed;                   // of these
  std::optional<WallTime> certificate_end;  // none: no TLS
};

// The certificate that is shown, which may be renewed while the daemon runs.
class TlsDoor {
 public:
  // None is shown before Load. The files are read again by each.
  TlsDoor(std::string certificate_file, std::string key_file)
      : certificate_file_(std::move(certificate_file)), key_file_(std::move(key_file)) {}

  // New connections are shown what the files hold now; when they cannot be used, what they were
  // shown before.
  Status Load();
  // The same in two steps: from the files, which may take as long as a disk, on any thread; and
  // from then on.
  StatusOr<protocol::TlsContext::Ptr> Read() const;
  void Show(protocol::TlsContext::Ptr context);
  // OK, or that the certificate which is shown has ended ("certificate_expired") or ends soon
  // ("certificate_ends_soon"), or is not valid yet ("certificate_not_yet_valid"), with what to do.
  Status CheckEnd(WallTime now) const;
  // The same for a log: not OK the first time of each, and again behind a Load. O(1), for each
  // turn.
  Status NoteEnd(WallTime now);
  std::unique_ptr<Session> Wrap(std::unique_ptr<Session> inner);

  // What a client gets that there is no room for: more can be said only behind a handshake.
  static std::string_view NoRoom();

  const TlsFigures& figures() const { return figures_; }

  TurnedAway* last_failed() { return &figures_.last_failed; }

 private:
  enum class Age : uint8_t { kValid, kEndsSoon, kExpired, kNotYetValid };

  Age AgeAt(WallTime now) const;

  const std::string certificate_file_;
  const std::string key_file_;
  protocol::TlsContext::Ptr context_;
  TlsFigures figures_;
  WallTime begins_{};
  WallTime ends_soon_from_{};
  Age noted_ = Age::kValid;
};

class TlsSession final : public Session {
 public:
  // `figures` must outlive the session.
  TlsSession(const protocol::TlsContext::Ptr& context,
             std::unique_ptr<Session> inner,
             TlsFigures* figures)
      : channel_(context), inner_(std::move(inner)), figures_(figures) {}

  void SetPeer(Peer peer) override {
    peer_ = peer;
    inner_->SetPeer(std::move(peer));
  }

  void Receive(std::string_view bytes) override;
  std::optional<SessionRequest> Next(const Now& now) override;
  std::optional<SessionRequest> NextRead(const Now& now) override;

  bool waits_for_room() const override { return !ended_ && inner_->waits_for_room(); }

  void Answer(uint64_t tag, const engine::Reply& reply) override;
  void AnswerAdmin(uint64_t tag, const AdminAnswer& answer) override;
  void Stop() override;
  void InputEnded() override;

  bool input_ended() const override { return channel_.peer_closed(); }

  std::vector<LeaseToken> Leave() override { return inner_->Leave(); }

  void Refuse(const Status& why) override;
  bool wants_input() const override;

  bool greets() const override { return !greeted_ && !ended_; }

  bool has_more() const override { return !ended_ && inner_->has_more(); }

  bool held_up() const override { return !ended_ && inner_->held_up(); }

  uint64_t requests() const override { return inner_->requests(); }

  size_t held_bytes() const override { return channel_.output().size() + inner_->held_bytes(); }

  std::string_view output() const override {
    return in_the_clear_ ? inner_->output() : channel_.output();
  }

  void Sent(size_t bytes) override;

  bool finished() const override { return ended_; }

  Phase phase() const override;

 private:
  // Of a message behind the handshake only a part has come: nothing can be said before the rest.
  bool is_cut() const { return greeted_ && !ended_ && !channel_.established(); }

  // A client that was given http:// for https://.
  void AnswerInTheClear();
  void Fail(std::string_view cause);
  // What the session inside has found, or that it has no more to find.
  std::optional<SessionRequest> Pass(std::optional<SessionRequest> request);
  // Enciphers what the session inside has to say, as far as the client takes it.
  void Pump();

  protocol::TlsChannel channel_;
  std::unique_ptr<Session> inner_;
  TlsFigures* figures_;
  Peer peer_;
  bool begun_ = false;    // the first byte is there
  bool greeted_ = false;  // the handshake is done
  bool in_the_clear_ = false;
  bool ended_ = false;  // nothing follows behind output()
};

}  // namespace delayd
