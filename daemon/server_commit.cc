// The way of a batch to the disk: which thread commits it, and when its answers are sent.
#include <algorithm>
#include <chrono>
#include <utility>

#include "base/crash_point.h"
#include "daemon/log.h"
#include "daemon/server_loop.h"

namespace delayd {

namespace {

// docs/decisions/0047: the core thread itself commits a batch that few clients wait for, if the
// batches before it were small too and the disk is fast.
constexpr uint32_t kFewMax = 256;  // clients, and jobs
constexpr size_t kFewBytesMax = size_t{512} * 1024;
constexpr uint32_t kSmallBatchesMin = 4;
constexpr std::chrono::milliseconds kFastCommit{2};
// The core thread does not commit if a client waits for a job that falls due within this many times
// the duration of the last commit: the disk must not delay the job.
constexpr int kSoonCommits = 2;

}  // namespace

Status Server::Loop::Submit(const Now& now) {
  // The grace period of a stop is over. Leases that end would go on producing batches for ever.
  const bool is_too_late = stopping_ && now.boot >= stop_deadline_;
  if (in_flight_ || is_too_late) {
    return OkStatus();
  }
  std::optional<engine::SealedBatch> batch = engine_->Seal(now);
  if (!batch) {
    return OkStatus();
  }
  in_flight_ = true;
  DELAYD_CRASH_POINT("server/sealed");
  submitted_ = std::chrono::steady_clock::now();
  submitted_boot_ = now.boot;
  figures_.commit_jobs.Observe(batch->jobs);
  figures_.commit_bytes.Observe(batch->batch->bytes());
  small_batches_ = is_small(*batch) ? small_batches_ + 1 : 0;
  const uint32_t clients = std::exchange(clients_, 0);
  pipelined_ = false;
  if (small_batches_ <= kSmallBatchesMin || last_commit_ > kFastCommit || is_expected_soon(now) ||
      committer_.IsHeldUp()) {
    committer_.Submit(*std::move(batch));
    return OkStatus();
  }
  storage::JobStore::OnDurable on_durable;
  // A single client is woken sooner if this thread sends the answer right before it goes to sleep,
  // that is, after the whole commit; unless the processors are kept awake anyway.
  if (clients > 1 || (options_.processors != nullptr && options_.processors->awake())) {
    on_durable = [this, sequence = batch->sequence] { AnswerDurable(sequence); };
  }
  durable_at_.reset();
  Status status = committer_.CommitHere(*batch, on_durable);
  commit_here_ = std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - submitted_);
  return TakeCommit(
      {batch->sequence, std::move(status), durable_at_.value_or(std::chrono::steady_clock::now())});
}

// Called while the store still makes the batch readable; the clients can send their next requests
// meanwhile.
void Server::Loop::AnswerDurable(uint64_t sequence) {
  durable_at_ = std::chrono::steady_clock::now();
  engine_->Durable(sequence);
  SendReady();
}

// True if nobody waits for long while the core thread itself waits for the disk.
bool Server::Loop::is_small(const engine::SealedBatch& batch) const {
  const size_t bytes = batch.batch->bytes();
  return !pipelined_ && clients_ <= kFewMax && batch.jobs <= kFewMax && bytes <= kFewBytesMax &&
         engine_->uncommitted_bytes() <= bytes;
}

bool Server::Loop::is_expected_soon(const Now& now) const {
  if (!engine_->IsAwaited()) {
    return false;
  }
  const std::optional<Micros> next = engine_->UntilNextEvent(now);
  return next && *next <= kSoonCommits * last_commit_;
}

Status Server::Loop::TakeCommit(const CommitResult& result) {
  in_flight_ = false;
  if (!result.status.ok()) {
    return FailAll(result.status);
  }
  NoteCommit(result);
  DELAYD_CRASH_POINT("server/committed");
  engine_->Committed(result.sequence);
  DeliverReplies();
  return OkStatus();
}

void Server::Loop::NoteCommit(const CommitResult& result) {
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(result.at - submitted_);
  figures_.commit_us.Observe(static_cast<uint64_t>(took.count()));
  last_commit_ = took;
  if (took > options_.slow_commit) {
    ++figures_.slow_commits;
    log::Warn(
        "slow commit",
        {{"commit", result.sequence}, {"ms", std::chrono::duration_cast<Millis>(took).count()}});
  }
}

// Watches commits on the committer's thread; that thread watches those of the core thread.
void Server::Loop::WatchCommit(const Now& now) {
  commit_look_ =
      in_flight_ ? commit_watch_.Look(submitted_, now.boot - submitted_boot_) : std::nullopt;
}

void Server::Loop::DiskChanged(const Status& refusal) {
  engine_->RefuseEnqueues(refusal);
  if (refusal.ok()) {
    log::Info("the disk has room again, and can be written; new jobs are taken");
    return;
  }
  log::Error(refusal.reason() == "disk_read_only" ? "the disk is read-only; new jobs are refused"
                                                  : "the disk is nearly full; new jobs are refused",
             {{"code", refusal.reason()}, {"detail", refusal.message()}});
}

}  // namespace delayd
