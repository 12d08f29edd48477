// daemon/beanstalk/session.h — one beanstalk connection without its socket.
//
// What:    commands may be pipelined: each is given to the engine as it is read, and the replies go
//          out in the order of the commands, whichever is ready first. Only a reserve holds up what
//          is behind it, as the protocol has it. Reservations belong to the connection: they are
//          given back when it ends, with no attempt used.
// Units:   base/time.h.
// Errors:  none; see daemon/session.h.
// Threads: the core thread.
// Cost:    at most kCommandsMax replies are waited for, and kOutputBytesMax are kept for a client
//          that does not read; then input is left in the socket. An idle connection costs below
//          2 KiB beside its socket.
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

// What a command that cannot be understood is answered with. In replies.cc.
std::string_view ReplyTo(Refusal refusal);

class BeanstalkSession final : public Session {
 public:
  // What an idle connection keeps of its buffer.
  static constexpr size_t kIdleOutputBytes = 2048;
  static constexpr size_t kCommandsMax = 1024;
  static constexpr size_t kOutputBytesMax = size_t{1} << 20;
  // Of commands whose replies may be large: their bytes are there only when they are answered.
  static constexpr size_t kLargeRepliesMax = 4;
  // Input that waits behind a reserve.
  static constexpr size_t kWaitingInputMax = size_t{64} << 10;
  // Tubes that are watched: each reserve goes through all of them.
  static constexpr size_t kWatchedMax = 10'000;
  // About what one costs, here and in a reserve that waits, and what a name costs that nobody
  // watched before. A few are no more than the connection itself.
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
    return reader_.buffered_bytes() + output_.size() + (tubes_ != nullptr ? tubes_->bytes() : 0) +
           many(watched_.size()) * kWatchedBytes + many(names_) * kNameBytes;
  }

  std::string_view output() const override;
  void Sent(size_t bytes) override;
  bool finished() const override;

  // Connections may be idle for as long as they like: clients of this protocol are.
  Phase phase() const override { return Phase::kWorking; }

 private:
  // The place of a reply in the order of replies.
  struct Slot {
    Verb verb = Verb::kNone;
    bool answered = false;
    std::string text;                         // answered while another was in front
    std::unique_ptr<Deletion> deletion = {};  // of delete and delete-batch
  };

  // What a reserve without a job is answered with, when its wait is over.
  enum class OnEmpty : uint8_t { kTimedOut, kDeadlineSoon, kAskAgain };

  // A reserve under way: nothing behind it is read.
  struct Waiting {
    uint64_t tag = 0;
    uint32_t count = 1;       // jobs it takes at most
    bool is_counted = false;  // among those that wait
    std::optional<BootTime> until;
    OnEmpty on_empty = OnEmpty::kTimedOut;
    bool ask_again = false;
  };

  // ---- session.cc ----
  bool full() const {
    return slots_.size() >= kCommandsMax || large_ >= kLargeRepliesMax || counting_ ||
           output_.size() >= kOutputBytesMax;
  }

  bool ended() const { return quit_ || stopped_; }

  uint64_t last_tag() const { return first_tag_ + slots_.size() - 1; }

  std::optional<SessionRequest> Begin(const Command& command, const Now& now);
  Slot* PushSlot(Verb verb);
  std::string* TextOf(Slot* slot);
  void Finish(Slot* slot);
  void StopWaiting();
  void FallSilent();

  // ---- orders.cc: what a command asks of the engine; none: it was answered, in `text` ----
  std::optional<engine::Command> OrderOf(const Command& command, const Now& now, std::string* text);
  engine::Command OrderPut(const Command& command);
  std::optional<engine::Command> OrderBatch(const Command& command, std::string* text);
  engine::Command OrderReserve(const Now& now);
  engine::Command OrderDelete(JobId id, const Now& now);
  std::optional<engine::Command> OrderDeleteBatch(const Command& command,
                                                  const Now& now,
                                                  std::string* text);
  engine::Command Begin(std::unique_ptr<Deletion> deletion);
  engine::Command OrderPause(const Command& command);
  std::optional<engine::Command> OrderHeld(const Command& command,
                                           const Now& now,
                                           std::string* text);
  std::optional<engine::Command> OrderLook(const Command& command);
  void DoLocally(const Command& command, std::string* text);
  void Watch(std::string_view name);
  void Ignore(Tube* tube);
  void BecomeProducer();
  void BecomeWorker();

  // ---- replies.cc: what the engine's answer is in words ----
  // False: the slot waits for one answer more.
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
  std::optional<SessionRequest> also_;  // the next part of a command, to be asked next
  Reservations reservations_;
  Now now_;  // of the last Next

  Quota quota_;  // that its jobs count against

  Tube* used_;
  std::vector<Tube*> watched_;
  size_t names_ = 0;  // of them that it pays for

  OutgoingBytes output_{kIdleOutputBytes};
  size_t large_ = 0;  // slots with large replies
  // Stats or a list of tubes are under way: of what there is as the commands before them left it.
  bool counting_ = false;
  std::unique_ptr<TubeList> tubes_;  // of the list under way

  bool starved_ = true;       // the reader needs more input for the next command
  bool input_ended_ = false;  // the client sends no more
  bool quit_ = false;
  bool stopped_ = false;
  // Nothing said yet that makes sense, over TCP: a web page can make a browser send its request
  // here, and the body of that may be commands.
  bool is_strange_ = false;
  bool silent_ = false;  // an outcome is unknown: a reply, and whatever follows, would be a lie
  bool is_producer_ = false;
  bool is_worker_ = false;
};

}  // namespace delayd::beanstalk
