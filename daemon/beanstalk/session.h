// daemon/beanstalk/session.h — one beanstalk connection without its socket.
//
// What:    commands may be pipelined: each goes to the engine as it is read, and the replies are
//          sent in the order of the commands, whichever is ready first. A reserve holds up the
//          commands after it, as the protocol requires; so do stats, stats-tube and list-tubes.
//          Reservations belong to the connection: when it ends they are given back, and no attempt
//          is used up.
// Units:   base/time.h.
// Errors:  none; see daemon/session.h.
// Threads: the core thread.
// Cost:    at most kCommandsMax replies may be pending, and about kOutputBytesMax bytes are kept
//          for a client that does not read, or behind a reply that is pending; beyond that, input
//          stays in the socket. An idle connection costs less than 2 KiB besides its socket.
// Source:  docs/protocol.md
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/outgoing_bytes.h"
#include "daemon/beanstalk/deletion.h"
#include "daemon/beanstalk/hub.h"
#include "daemon/beanstalk/reservations.h"
#include "daemon/beanstalk/stats.h"
#include "daemon/session.h"
#include "protocol/beanstalk/command_reader.h"

#include <boost/circular_buffer.hpp>

namespace delayd::beanstalk {

// The reply to a command that cannot be understood. In replies.cc.
std::string_view ReplyTo(Refusal refusal);

class BeanstalkSession final : public Session {
 public:
  // The buffer that an idle connection keeps.
  static constexpr size_t kIdleOutputBytes = 2048;
  static constexpr size_t kCommandsMax = 1024;
  static constexpr size_t kOutputBytesMax = size_t{1} << 20;
  // Pending commands whose replies may be large: their size is known only with the answer.
  static constexpr size_t kLargeRepliesMax = 4;
  // Bytes of input that may wait behind a reserve.
  static constexpr size_t kWaitingInputMax = size_t{64} << 10;
  // Watched tubes: each reserve goes through all of them.
  static constexpr size_t kWatchedMax = 10'000;
  // The approximate cost of a watched tube, here and in a waiting reserve, and of a name that
  // nobody watched before. The first kWatchedFree count as part of the connection.
  static constexpr size_t kWatchedBytes = 64;
  static constexpr size_t kNameBytes = 1024;
  static constexpr size_t kWatchedFree = 100;

  // The hub must outlive the session.
  explicit BeanstalkSession(Hub* hub);
  ~BeanstalkSession() override;
  BeanstalkSession(const BeanstalkSession&) = delete;
  BeanstalkSession& operator=(const BeanstalkSession&) = delete;

  void SetPeer(Peer peer) override;
  void Receive(std::string_view bytes) override;
  std::optional<SessionRequest> Next(const Now& now) override;
  void Answer(uint64_t tag, const engine::Reply& reply) override;
  void Stop() override;
  void InputEnded() override;

  void Refuse(const Status& /*why*/) override {}

  std::vector<LeaseToken> Leave() override { return reservations_.TakeAll(); }

  bool wants_input() const override;
  bool has_more() const override;
  bool held_up() const override;

  size_t held_bytes() const override {
    const auto many = [](size_t count) { return std::max(count, kWatchedFree) - kWatchedFree; };
    return reader_.buffered_bytes() + held_bytes_ + output_.size() +
           (tubes_ != nullptr ? tubes_->bytes() : 0) + many(watched_.size()) * kWatchedBytes +
           many(names_) * kNameBytes;
  }

  std::string_view output() const override;
  void Sent(size_t bytes) override;
  bool finished() const override;

  // Connections have no idle timeout: clients of this protocol may be idle for long.
  Phase phase() const override { return Phase::kWorking; }

 private:
  // The place of a reply in the order of replies.
  struct Slot {
    Verb verb = Verb::kNone;
    bool answered = false;
    std::string text;                         // the reply, if an earlier slot is not answered
    std::unique_ptr<Deletion> deletion = {};  // of delete and delete-batch
  };

  // What happens to a reserve without a job when its wait is over.
  enum class OnEmpty : uint8_t { kTimedOut, kDeadlineSoon, kAskAgain };

  // A reserve under way: no command after it is read.
  struct Waiting {
    uint64_t tag = 0;
    uint32_t count = 1;       // the most jobs it takes
    bool is_counted = false;  // in the waiting counts of the hub and the tubes
    std::optional<BootTime> until;
    OnEmpty on_empty = OnEmpty::kTimedOut;
    bool ask_again = false;
  };

  // ---- session.cc ----
  bool full() const {
    return slots_.size() >= kCommandsMax || large_ >= kLargeRepliesMax || counting_ ||
           output_.size() + held_bytes_ >= kOutputBytesMax;
  }

  bool ended() const { return quit_ || stopped_; }

  uint64_t last_tag() const { return first_tag_ + slots_.size() - 1; }

  std::optional<SessionRequest> Begin(const Command& command, const Now& now);
  Slot* PushSlot(Verb verb);
  std::string* TextOf(Slot* slot);
  void Finish(Slot* slot);
  void StopWaiting();
  void FallSilent();

  // ---- orders.cc: the engine command for a request; none: it was answered in `text` ----
  std::optional<engine::Command> OrderOf(const Command& command, const Now& now, std::string* text);
  engine::Command OrderPut(const Command& command);
  std::optional<engine::Command> OrderBatch(const Command& command, std::string* text);
  engine::Command OrderReserve(const Now& now);
  engine::Command OrderDelete(JobId id, const Now& now);
  std::optional<engine::Command> OrderDeleteBatch(const Command& command,
                                                  const Now& now,
                                                  std::string* text);
  engine::Command Begin(std::unique_ptr<Deletion> deletion);
  std::optional<engine::Command> OrderPause(const Command& command, std::string* text);
  std::optional<engine::Command> OrderHeld(const Command& command,
                                           const Now& now,
                                           std::string* text);
  std::optional<engine::Command> OrderLook(const Command& command);
  void DoLocally(const Command& command, std::string* text);
  void Watch(std::string_view name);
  void Ignore(Tube* tube);
  void BecomeProducer();
  void BecomeWorker();

  // ---- replies.cc: the engine's answer in the words of the protocol ----
  // False: the slot waits for another answer.
  bool Render(Slot* slot, const engine::Reply& reply, std::string* text);
  bool RenderReserved(Verb verb, const engine::Reply& reply, std::string* text);
  void RenderFailed(const Slot& slot, const Status& status, std::string* text);
  void RenderDone(const Slot& slot, const engine::Reply& reply, std::string* text);
  void RenderLook(Slot* slot, const engine::Reply& reply, std::string* text);
  bool RenderTubes(const engine::Reply& reply, std::string* text);

  Hub* const hub_;
  CommandReader reader_;
  boost::circular_buffer<Slot> slots_;
  uint64_t first_tag_ = 0;  // of slots_.front()
  std::optional<Waiting> waiting_;
  std::optional<SessionRequest> also_;  // the next part of a command, returned by the next Next
  Reservations reservations_;
  Now now_;  // of the last Next

  Quota quota_;  // that its jobs are charged to

  Tube* used_;
  std::vector<Tube*> watched_;
  size_t names_ = 0;  // watched tubes whose name this session is charged for

  OutgoingBytes output_{kIdleOutputBytes};
  size_t large_ = 0;       // slots with large replies
  size_t held_bytes_ = 0;  // of replies that wait for one before them
  // Stats or a list of tubes are under way. They must show the state just after the commands before
  // them.
  bool counting_ = false;
  std::unique_ptr<TubeList> tubes_;  // of the list under way

  bool starved_ = true;       // the reader needs more input for the next command
  bool input_ended_ = false;  // the client sends nothing more
  bool quit_ = false;
  bool stopped_ = false;
  // A TCP client whose first command has not come yet. It must be a known one: a web page can make
  // a browser send a request here whose body consists of commands.
  bool is_strange_ = false;
  bool silent_ = false;  // an outcome is unknown: any reply from then on could be wrong
  bool is_producer_ = false;
  bool is_worker_ = false;
};

}  // namespace delayd::beanstalk
