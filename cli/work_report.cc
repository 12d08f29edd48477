#include "cli/work_report.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <optional>

#include "cli/human_time.h"
#include "protocol/client.h"
#include "protocol/json_writer.h"

namespace delayd::cli {
namespace {

// Whether a line can be written to `fd`. With `wake_fd`, waits for that until `wake_fd` is
// readable. A stopped terminal or a pager takes nothing, and a worker that waited for it could
// neither keep a lease nor be stopped.
bool TakesLine(int fd, std::optional<int> wake_fd = std::nullopt) {
  std::array<pollfd, 2> entries{{{fd, POLLOUT, 0}, {wake_fd.value_or(-1), POLLIN, 0}}};
  while (poll(entries.data(), entries.size(), wake_fd.has_value() ? -1 : 0) < 0) {
  }
  return entries[0].revents != 0;
}

std::string LineOf(const JobView& job, const Delivery& delivery, Millis took) {
  return "job " + std::to_string(ToInt(job.id)) + (job.key.empty() ? "" : " " + job.key) +
         " attempt " + std::to_string(job.attempt) + ": " + delivery.words + " after " +
         RoughDuration(took) + ", handed out " + RoughDuration(job.lateness.value_or(Millis(0))) +
         " late";
}

std::string JsonOf(const JobView& job,
                   const Verdict& verdict,
                   const Delivery& delivery,
                   Millis took) {
  protocol::JsonObjectWriter writer;
  writer.Number("id", ToInt(job.id));
  writer.String("queue", job.queue);
  if (!job.key.empty()) {
    writer.String("key", job.key);
  }
  writer.Number("attempt", job.attempt);
  writer.String("action", verdict.action.empty() ? "lost" : verdict.action);
  writer.Bool("told", delivery.told);
  if (const std::string& error = delivery.told ? verdict.error : delivery.words; !error.empty()) {
    writer.String("error", error);
  }
  writer.Number("took_ms", static_cast<uint64_t>(took.count()));
  writer.Number("lateness_ms", static_cast<uint64_t>(job.lateness.value_or(Millis(0)).count()));
  return writer.Take();
}

}  // namespace

Status WorkReport::TellJob(const JobView& job,
                           const Verdict& verdict,
                           const Delivery& delivery,
                           Millis took) {
  const bool in_words = output_ == OutputFormat::kTable;
  if (!TakesLine(in_words ? STDERR_FILENO : STDOUT_FILENO, abandon_fd_)) {
    return OkStatus();
  }
  if (!in_words) {
    return console_->Line(JsonOf(job, verdict, delivery, took));
  }
  console_->Say(LineOf(job, delivery, took));
  return OkStatus();
}

void WorkReport::TellOutage(const Status& status) {
  if (TakesLine(STDERR_FILENO) && !outage_.exchange(true)) {
    // Leases fence, so the user need not look whether the request was carried out.
    console_->Warn(status.WithMessage(protocol::WithoutWarning(status) + "; waiting for delayd"));
  }
}

void WorkReport::TellBack() {
  if (outage_.load() && TakesLine(STDERR_FILENO) && outage_.exchange(false)) {
    console_->Say("delayd answers again");
  }
}

void WorkReport::TellPaused(const protocol::QueueCounts& queue) {
  if (TakesLine(STDERR_FILENO) && !told_paused_.exchange(true)) {
    console_->Say(PausedQueue(queue.name, queue.sound(), queue.pause_left));
  }
}

void WorkReport::TellDamaged(const protocol::QueueCounts& queue) {
  if (TakesLine(STDERR_FILENO) && !told_damaged_.exchange(true)) {
    console_->Warn(DataLoss(DamagedQueue(queue.name, queue.damaged), "damaged"));
  }
}

}  // namespace delayd::cli
