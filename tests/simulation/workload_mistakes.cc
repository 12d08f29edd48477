// What is refused, whatever state the store is in.
#include "base/limits.h"
#include "tests/simulation/workload.h"

namespace delayd::simulation {

using engine::Command;

DueSpec Workload::DueThatCannotBe() {
  switch (choices_.Below(4)) {
    case 0:
      return DueAfter{Millis(-1)};
    case 1:
      return DueAfter{Millis(limits::kDelayMsMax + 1)};
    case 2:
      return DueAt{WallFromMillis(-1)};
    default:
      return DueAt{WallFromMillis(limits::kWallMsMax + 1)};
  }
}

std::string Workload::BrokenCursor() {
  static const std::string kCursors[] = {"-", "5", "5-", "x-1", "5-1x", "ffffffffffffffff-1"};
  return kCursors[choices_.Below(6)];
}

Command Workload::NextMistake(const Now& now) {
  switch (choices_.Below(26)) {
    case 0:
      return engine::Enqueue{};
    case 1: {
      JobSpec spec = Spec(now);
      spec.due = DueAfter{Millis(-1)};
      JobSpec good = Spec(now);
      return engine::Enqueue{{std::move(good), std::move(spec)}};
    }
    case 2:
      return engine::Lease{.queues = {Queue()}, .count = 0};
    case 3:
      return engine::Lease{.queues = {Queue()}, .wait = Millis(limits::kLeaseWaitMsMax + 1)};
    case 4:
      return engine::Extend{.token = Token(), .lease = Millis(0)};
    case 5:
      return engine::Lease{.queues = {Queue()},
                           .client = std::string(limits::kClientNameBytesMax + 1, 'w')};
    case 6: {
      JobSpec spec = Spec(now);
      spec.past = Past(now);
      if (choices_.OneIn(2)) {
        spec.past->kicks = limits::kPastFigureMax + 1;
      } else {
        spec.past->history.resize(limits::kJobEventsMax + 1);
      }
      return engine::Enqueue{{std::move(spec)}};
    }
    case 7:
      return engine::AckMany{};
    case 8:
      return engine::CancelIds{};
    case 9:
      return engine::Pause{.queue = Queue(), .duration = Millis(0), .create = true};
    case 10:
      return engine::Nack{.token = Token(), .delay = Millis(-1)};
    case 11:
      return engine::Resume{.queue = "nobody", .is_known = choices_.OneIn(2)};
    case 12:
      return engine::LeaseJob{.job = Job(), .lease = Millis(0)};
    case 13:
      return engine::Reschedule{.job = Job()};
    case 14: {
      static const std::string kNames[] = {
          "", "-q0", "q 0", std::string(limits::kQueueNameBytesMax + 1, 'q')};
      JobSpec spec = Spec(now);
      spec.queue = kNames[choices_.Below(4)];
      return engine::Enqueue{{std::move(spec)}};
    }
    case 15: {
      static const std::string kKeys[] = {
          "key\n", "key\x80", std::string(limits::kKeyBytesMax + 1, 'k')};
      JobSpec spec = Spec(now);
      spec.key = kKeys[choices_.Below(3)];
      return engine::Enqueue{{std::move(spec)}};
    }
    case 16: {
      JobSpec spec = Spec(now);
      spec.expires_after = Millis(choices_.OneIn(2) ? 0 : limits::kDelayMsMax + 1);
      return engine::Enqueue{{std::move(spec)}};
    }
    case 17: {
      JobSpec spec = Spec(now);
      spec.touch_delay = Millis(choices_.OneIn(2) ? -1 : limits::kDelayMsMax + 1);
      return engine::Enqueue{{std::move(spec)}};
    }
    case 18: {
      JobSpec spec = Spec(now);
      spec.key.clear();
      spec.on_conflict = choices_.OneIn(2) ? OnConflict::kKeep : OnConflict::kReplace;
      return engine::Enqueue{{std::move(spec)}};
    }
    case 19:
      return engine::Reschedule{.job = Job(), .due = DueThatCannotBe()};
    case 20: {
      engine::ChangeMany command{.action = engine::ChangeMany::Action::kReschedule,
                                 .filter = {.queue = Queue()},
                                 .due = DueThatCannotBe()};
      return command;
    }
    case 21: {
      engine::ChangeMany command{.filter = {.queue = Queue()}};
      if (choices_.OneIn(2)) {
        command.limit = limits::kBulkJobsMax + 1;
      } else {
        command.cursor = BrokenCursor();
      }
      return command;
    }
    case 22:
      return engine::ListQueues{.cursor = BrokenCursor()};
    case 23:
      return engine::Forecast{.from = now.wall,
                              .to = now.wall + Millis(choices_.Below(2)),
                              .step = Millis(choices_.Below(2)) - Millis(1)};
    case 24:
      return engine::Forecast{.from = now.wall,
                              .to = now.wall + Millis(limits::kForecastStepsMax + 1),
                              .step = Millis(1)};
    default:
      return engine::Lease{.queues = {Queue(), ""}};
  }
}

}  // namespace delayd::simulation
