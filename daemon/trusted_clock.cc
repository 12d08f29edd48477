#include "daemon/trusted_clock.h"

#include <string>
#include <utility>

#include "daemon/log.h"
#include "protocol/duration.h"
#include "storage/keys.h"
#include "storage/record.h"

#include <sys/stat.h>
#include <sys/timex.h>

namespace delayd {

namespace {

constexpr Millis kAskEvery{1000};
// The longest time between a time service's step of the clock and its report of that.
constexpr Millis kStepSlack{5000};

}  // namespace

std::optional<WallTime> SynchronisedAt() {
  timex query{};  // modes 0: only reads
  if (::adjtimex(&query) >= 0) {
    return (query.status & STA_UNSYNC) == 0 ? std::optional(SystemClock().Sample().wall)
                                            : std::nullopt;
  }

  // A sandbox that protects the clock forbids this query too. systemd-timesyncd touches a file
  // whenever it has synchronised; setting the clock by hand does not change the file.
  struct stat file {};

  if (::stat("/run/systemd/timesync/synchronized", &file) != 0) {
    return std::nullopt;
  }
  return WallFromMillis(int64_t{file.st_mtim.tv_sec} * 1000 + file.st_mtim.tv_nsec / 1'000'000);
}

StatusOr<std::optional<engine::ClockSeen>> ReadClockSeen(const storage::JobReader& store) {
  std::string value;
  const Status got = store.Get(storage::Table::kMeta, storage::kClockKey, &value);
  if (got.code() == StatusCode::kNotFound) {
    return std::optional<engine::ClockSeen>();
  }
  DELAYD_RETURN_IF_ERROR(got);
  DELAYD_ASSIGN_OR_RETURN(const auto record, storage::DecodeClockRecord(storage::kClockKey, value));
  return std::optional(
      engine::ClockSeen{.wall = record.wall, .boot_id = record.boot_id, .boot = record.boot});
}

TrustedClock::TrustedClock(const Clock* machine,
                           const engine::ClockWatchOptions& options,
                           const std::optional<engine::ClockSeen>& last,
                           uint64_t boot_id,
                           std::function<std::optional<WallTime>()> synchronised_at)
    : machine_(machine),
      synchronised_at_(std::move(synchronised_at)),
      watch_(options, last, boot_id, machine->Sample()) {
  LogChange();
}

Now TrustedClock::Sample() const {
  const Now now = watch_.Trust(machine_->Sample());
  LogChange();
  return now;
}

bool TrustedClock::Tend() {
  if (state() == engine::ClockState::kTrusted) {
    return false;
  }
  const Now raw = machine_->Sample();
  if (raw.boot < next_question_) {
    return false;
  }
  next_question_ = raw.boot + kAskEvery;
  if (!IsSynchronised()) {
    return false;
  }
  log::Info("the clock is synchronised; it is believed");
  Accept();
  return true;
}

// A report from before the clock was set says nothing about the clock as it is now. But a report
// close to the moment when the clock became suspect belongs to the step itself, and counts.
bool TrustedClock::IsSynchronised() const {
  const std::optional<WallTime> at = synchronised_at_();
  const Now raw = machine_->Sample();
  if (!at || *at > raw.wall) {
    return false;
  }
  if (state() == engine::ClockState::kHeld) {
    return *at > raw.wall - watch_.difference();
  }
  return at != synchronised_then_ ||
         (*at > suspect_since_ - kStepSlack && *at < suspect_since_ + kStepSlack);
}

std::optional<BootTime> TrustedClock::wake() const {
  return state() == engine::ClockState::kTrusted ? std::nullopt : std::optional(next_question_);
}

void TrustedClock::Accept() {
  watch_.Accept(machine_->Sample());
  LogChange();
}

std::string TrustedClock::Explain() const {
  const std::string by = protocol::FormatDuration(watch_.difference());
  switch (state()) {
    case engine::ClockState::kTrusted:
      return "";
    case engine::ClockState::kBehind:
      return "the wall clock is " + by +
             " behind what it was before; jobs with a wall-clock time are late until it is put "
             "right: set the clock, or 'delayctl clock accept' if it is right now";
    case engine::ClockState::kHeld:
      return "the wall clock is " + by +
             " ahead of what it can be; jobs with a wall-clock time are held until it is put "
             "right or synchronised: set the clock, or 'delayctl clock accept' if it is right";
  }
  return "";
}

void TrustedClock::LogChange() const {
  if (logged_ == state()) {
    return;
  }
  logged_ = state();
  suspect_since_ = machine_->Sample().wall;
  synchronised_then_ = synchronised_at_();
  if (logged_ == engine::ClockState::kTrusted) {
    log::Info("the clock is believed again");
  } else {
    log::Warn("clock_suspect", {{"state", engine::ClockStateName(logged_)}, {"detail", Explain()}});
  }
}

}  // namespace delayd
