#include "cli/worker.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <system_error>
#include <thread>

#include "base/check.h"
#include "cli/worker_slot.h"

#include <sys/eventfd.h>

namespace delayd::cli {

Worker::Worker(Context* context, WorkOptions options)
    : context_(context),
      options_(std::move(options)),
      stop_fd_(eventfd(0, EFD_CLOEXEC)),
      abandon_fd_(eventfd(0, EFD_CLOEXEC)),
      report_(&context->console, context->globals.output, abandon_fd_) {
  DELAYD_CHECK(stop_fd_ >= 0);
  DELAYD_CHECK(abandon_fd_ >= 0);
  for (size_t i = 0; i < options_.concurrency; ++i) {
    wake_fds_.push_back(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
    DELAYD_CHECK(wake_fds_.back() >= 0);
  }
  // A handler may end without reading its payload.
  signal(SIGPIPE, SIG_IGN);
}

Worker::~Worker() {
  close(stop_fd_);
  close(abandon_fd_);
  for (const int fd : wake_fds_) {
    close(fd);
  }
}

Status Worker::Run() {
  std::vector<std::unique_ptr<Slot>> slots;
  for (size_t i = 0; i < options_.concurrency; ++i) {
    DELAYD_ASSIGN_OR_RETURN(std::unique_ptr<Api> api, context_->OpenApi());
    slots.push_back(std::make_unique<Slot>(this, std::move(api), wake_fds_[i]));
  }
  std::vector<std::thread> threads;
  threads.reserve(slots.size());
  try {
    for (const auto& slot : slots) {
      threads.emplace_back([&slot] { slot->Run(); });
    }
  } catch (const std::system_error& error) {
    // Not an abort, because slots that already run have jobs.
    Fatal(ResourceExhausted("no thread can be started for job " +
                            std::to_string(threads.size() + 1) + " of --concurrency " +
                            std::to_string(slots.size()) + ": " + error.code().message() + "; " +
                            std::string(kCureForProcesses)));
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const std::lock_guard lock(fatal_mutex_);
  return fatal_;
}

void Worker::Stop() {
  const int stops = ++stops_;
  const uint64_t one = 1;
  ssize_t written = write(stop_fd_, &one, sizeof one);
  if (stops > 1) {
    written = write(abandon_fd_, &one, sizeof one);
    for (const int fd : wake_fds_) {
      written = write(fd, &one, sizeof one);
    }
  }
  static_cast<void>(written);
}

bool Worker::TakeTurn() {
  if (!options_.count.has_value()) {
    return true;
  }
  // Never above the count, not even for a moment: a slot that has just given its turn back would
  // find none left, and end too early.
  uint64_t taken = turns_taken_.load();
  while (taken < *options_.count) {
    if (turns_taken_.compare_exchange_weak(taken, taken + 1)) {
      return true;
    }
  }
  return false;
}

void Worker::GiveTurnBack() {
  if (options_.count.has_value()) {
    turns_taken_.fetch_sub(1);
  }
}

void Worker::CountUndelivered() {
  if (stopping() || options_.drain || options_.count.has_value()) {
    ++undelivered_;
  }
}

void Worker::Fatal(const Status& status) {
  const std::lock_guard lock(fatal_mutex_);
  if (fatal_.ok()) {
    fatal_ = status;
  }
  if (!stopping()) {
    Stop();
  }
}

void Worker::Pause(Millis time) const {
  pollfd entry{.fd = stop_fd_, .events = POLLIN, .revents = 0};
  poll(&entry, 1, static_cast<int>(time.count()));
}

void Worker::ReportOutage(const Status& status) {
  // After the second stop calls are given up on purpose, and nobody waits any longer.
  if (!abandoning()) {
    report_.TellOutage(status);
  }
}

}  // namespace delayd::cli
