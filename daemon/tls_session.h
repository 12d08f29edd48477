// daemon/tls_session.h — a session of any protocol, spoken through TLS.
//
// What:    stands between the server and the inner session: decrypts the client's input and
//          encrypts the answers. The handshake counts as the head of a request, so that a slow one
//          times out as a slow request does; so does a later handshake message that has arrived
//          only in part.
// Errors:  a client that does not speak TLS gets an alert and is closed; one that sends plain text
//          is told so in plain text.
// Threads: the core thread.
// Cost:    holds one piece of encrypted answers besides what the inner session holds.
// Source:  docs/decisions/0077-tls.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/place_of.h"
#include "daemon/session.h"
#include "daemon/turned_away.h"
#include "protocol/tls.h"

namespace delayd {

struct TlsFigures {
  uint64_t handshakes = 0;
  uint64_t failed = 0;                      // handshakes, and channels that broke later
  TurnedAway last_failed;                   // the last of those
  std::optional<WallTime> certificate_end;  // none: no TLS
};

// The certificate that clients are shown. It may be renewed while the daemon runs.
class TlsDoor {
 public:
  // There is no certificate before the first Load. Each Load reads the files again.
  TlsDoor(std::string certificate_file, std::string key_file)
      : certificate_file_(std::move(certificate_file)), key_file_(std::move(key_file)) {}

  // Shows new connections the certificate that the files hold now; if it cannot be used, the
  // previous one stays. Errors begin with `place_of` of the key that names the file.
  Status Load(const PlaceOf& place_of = KeyAlone);
  // The same in two steps: Read may wait for the disk and may be called on any thread; Show uses
  // the result from then on.
  StatusOr<protocol::TlsContext::Ptr> Read(const PlaceOf& place_of) const;
  void Show(protocol::TlsContext::Ptr context);
  // OK, or that the current certificate has expired ("certificate_expired"), expires soon
  // ("certificate_ends_soon") or is not valid yet ("certificate_not_yet_valid"), with what to do.
  Status CheckEnd(WallTime now) const;
  // The same for the log: reports each state once, and again after a Load. O(1), so it may be
  // called every turn.
  Status NoteEnd(WallTime now);
  std::unique_ptr<Session> Wrap(std::unique_ptr<Session> inner);

  // The bytes for a client that there is no room for. Saying more would take a handshake.
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
  std::vector<uint64_t> RefuseForbidden() override;
  void Stop() override;
  void InputEnded() override;

  bool input_ended() const override { return channel_.peer_closed(); }

  std::vector<LeaseToken> Leave() override { return inner_->Leave(); }

  std::vector<LeaseToken> TakeUntold() override { return inner_->TakeUntold(); }

  void Refuse(const Status& why) override;
  bool wants_input() const override;

  bool greets() const override { return !greeted_ && !ended_; }

  bool has_untaken() const override { return !ended_ && inner_->has_untaken(); }

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
  // Only part of a message after the handshake has arrived; nothing can be sent before the rest.
  bool is_cut() const { return greeted_ && !ended_ && !channel_.established(); }

  // For a client that used http:// instead of https://.
  void AnswerInTheClear();
  void Fail(std::string_view cause);
  // Passes on a request of the inner session, or notices that it will have no more.
  std::optional<SessionRequest> Pass(std::optional<SessionRequest> request);
  // Encrypts the inner session's output, as far as the client takes it.
  void Pump();

  protocol::TlsChannel channel_;
  std::unique_ptr<Session> inner_;
  TlsFigures* figures_;
  Peer peer_;
  bool begun_ = false;    // the first byte has arrived
  bool greeted_ = false;  // the handshake is done
  bool in_the_clear_ = false;
  bool ended_ = false;  // nothing follows output()
};

}  // namespace delayd
