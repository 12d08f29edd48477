// One step of a bulk change: the same functions that change one job, for as many as a turn can
// bear.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <utility>

#include "base/limits.h"
#include "daemon/engine/due_range.h"
#include "daemon/engine/engine_core.h"
#include "daemon/engine/enqueue_checks.h"
#include "daemon/engine/list_page.h"

namespace delayd::engine {

using storage::JobRecord;

namespace {

// Where the step before ended, and a time that the first step fixed. For a move it is the due time:
// a delay counts from the first step, so that all jobs get the same due time, and a job that was
// moved is recognised when it is met again. For a kick it is the time when the change began, so
// that a job that was kicked and has come back is recognised.
struct BulkCursor {
  ListCursor after;
  std::optional<WallTime> fixed;
};

// The character before the fixed time. It makes the cursor of a kick invalid for a move.
char MarkOf(const ChangeMany& command) {
  return command.action == ChangeMany::Action::kKick ? '~' : '@';
}

std::string FormatBulkCursor(char mark, const BulkCursor& cursor) {
  std::string text = FormatListCursor(cursor.after);
  if (cursor.fixed) {
    char fixed[24];
    const auto millis = static_cast<unsigned long long>(ToMillis(*cursor.fixed));
    std::snprintf(fixed, sizeof fixed, "%c%llx", mark, millis);
    text += fixed;
  }
  return text;
}

StatusOr<BulkCursor> ParseBulkCursor(char mark, std::string_view text) {
  BulkCursor cursor;
  const size_t at = text.find(mark);
  if (at == 0) {
    return MalformedCursor();  // the beginning has fixed nothing
  }
  DELAYD_ASSIGN_OR_RETURN(cursor.after, ParseListCursor(text.substr(0, at)));
  if (at != std::string_view::npos) {
    const std::string_view fixed = text.substr(at + 1);
    int64_t millis = -1;
    const auto [end, error] =
        std::from_chars(fixed.data(), fixed.data() + fixed.size(), millis, 16);
    if (error != std::errc() || end != fixed.data() + fixed.size() || millis < 0 ||
        millis > limits::kWallMsMax) {
      return MalformedCursor();
    }
    cursor.fixed = WallFromMillis(millis);
  }
  return cursor;
}

// The fixed time of this step; `before` is that of the steps before.
std::optional<WallTime> FixedFor(const ChangeMany& command,
                                 std::optional<WallTime> before,
                                 WallTime now) {
  if (command.action == ChangeMany::Action::kKick) {
    // After the clock was set back, jobs that come back would seem to have been there before.
    return std::max(std::min(before.value_or(now), now), WallTime());
  }
  if (!command.due || before) {
    return before;
  }
  const auto* after = std::get_if<DueAfter>(&*command.due);
  return after != nullptr ? now + after->delay : std::get<DueAt>(*command.due).at;
}

Status ValidateFilter(const JobFilter& filter) {
  if (!filter.queue && !filter.state && !filter.due_before && !filter.due_after &&
      filter.key_prefix.empty()) {
    return InvalidArgument(
        "the filter is empty, which would mean every job; give a queue, state, key_prefix, "
        "due_before or due_after",
        "empty_filter");
  }
  if (filter.state == JobState::kFinished) {
    return InvalidArgument("finished jobs cannot be changed; choose scheduled, ready or dead",
                           "invalid_state");
  }
  if (filter.state == JobState::kDead && !filter.queue) {
    return InvalidArgument("a change of dead jobs needs a queue; add one to the filter",
                           "queue_required");
  }
  return OkStatus();
}

Status ValidateChange(const ChangeMany& command, WallTime now) {
  DELAYD_RETURN_IF_ERROR(ValidateFilter(command.filter));
  const std::optional<JobState>& state = command.filter.state;
  if (command.action == ChangeMany::Action::kKick && state != JobState::kDead &&
      state != JobState::kScheduled) {
    return InvalidArgument(
        "a kick is for dead jobs or for scheduled ones; give one of these states", "invalid_state");
  }
  if (command.action == ChangeMany::Action::kReschedule && state == JobState::kDead) {
    return InvalidArgument("dead jobs cannot be moved; kick them, or choose scheduled or ready",
                           "invalid_state");
  }
  if (command.limit > limits::kBulkJobsMax) {
    return InvalidArgument("limit of " + std::to_string(command.limit) +
                               " is out of range; use 1 to " +
                               std::to_string(limits::kBulkJobsMax) + " and follow next_cursor",
                           "invalid_limit");
  }
  return command.action == ChangeMany::Action::kReschedule
             ? CheckMove(command.due, command.priority, now)
             : OkStatus();
}

bool MayChange(ChangeMany::Action action, JobState state) {
  switch (action) {
    case ChangeMany::Action::kCancel:
      return state != JobState::kLeased;
    case ChangeMany::Action::kReschedule:
      return state == JobState::kScheduled || state == JobState::kReady;
    case ChangeMany::Action::kKick:
      return true;  // the filter names one of the states that can be kicked
  }
  DELAYD_CHECK(false);
}

// Events later than now were written before the clock was set back.
bool WasKickedSince(WallTime began, WallTime now, const JobRecord& record) {
  return std::ranges::any_of(record.events, [&](const storage::JobEvent& event) {
    return event.kind == storage::JobEvent::Kind::kKicked && event.at >= began && event.at <= now;
  });
}

}  // namespace

// Whether nothing is left to do for this job. A delay that is over by now cannot be met exactly:
// the jobs that were moved on the way are due between then and now.
bool EngineCore::IsAsAsked(const ChangeMany& command,
                           std::optional<WallTime> fixed,
                           JobState state,
                           const JobRecord& record) const {
  if (command.action == ChangeMany::Action::kCancel) {
    return false;
  }
  if (command.action == ChangeMany::Action::kKick) {
    return state != JobState::kDead &&
           (MomentOf(DueOf(record)).IsOver(now_) || WasKickedSince(*fixed, now_.wall, record));
  }
  if (command.priority && record.priority != *command.priority) {
    return false;
  }
  if (!fixed) {
    return true;
  }
  const bool relative = std::holds_alternative<DueAfter>(*command.due);
  const bool same_kind = (record.due_kind == DueKind::kRelative) == relative;
  return same_kind &&
         (record.due == *fixed || (relative && *fixed <= record.due && record.due <= now_.wall));
}

StatusOr<bool> EngineCore::ChangeOneOfMany(const ChangeMany& command,
                                           std::optional<WallTime> fixed,
                                           JobId id,
                                           uint64_t* changed) {
  const StatusOr<Located> located = LocateId(id);
  if (located.status().code() == StatusCode::kNotFound) {
    return false;  // it ends with a commit that is under way
  }
  const JobFilter& filter = command.filter;
  // A damaged job counts as a match, unless the filter has a key prefix, but is not changed: nobody
  // knows what it is.
  const auto note_damage = [&](const Status& why) {
    incidents_.push_back(why);
    return filter.key_prefix.empty();
  };
  if (located.status().code() == StatusCode::kDataLoss) {
    return note_damage(located.status());
  }
  DELAYD_RETURN_IF_ERROR(located.status());
  if (located->state == JobState::kFinished) {
    return false;  // it finishes with such a commit, too, and is kept
  }
  if (filter.state ? located->state != *filter.state : located->state == JobState::kDead) {
    return false;
  }
  StatusOr<JobRecord> record = ReadRecord(*located);
  if (record.status().code() == StatusCode::kDataLoss) {
    return note_damage(record.status());
  }
  DELAYD_RETURN_IF_ERROR(record.status());
  const bool dead = located->state == JobState::kDead;
  if (!DueRangeOf(filter).Holds(dead ? record->due : DueByNow(*record)) ||
      !record->key.starts_with(filter.key_prefix) ||
      IsAsAsked(command, fixed, located->state, *record)) {
    return false;
  }
  if (!command.dry_run && MayChange(command.action, located->state)) {
    Change(command, fixed, *located, &*record);
    ++*changed;
  }
  return true;
}

void EngineCore::Change(const ChangeMany& command,
                        std::optional<WallTime> fixed,
                        const Located& located,
                        JobRecord* record) {
  switch (command.action) {
    case ChangeMany::Action::kCancel:
      CancelLocated(located, record);
      break;
    case ChangeMany::Action::kReschedule: {
      std::optional<DueSpec> spec = command.due;
      if (fixed && std::holds_alternative<DueAfter>(*command.due)) {
        spec = DueAfter{std::max(*fixed - now_.wall, Millis(0))};
      }
      MoveLocated(located, record, spec, command.priority, Remembered::kYes);
      break;
    }
    case ChangeMany::Action::kKick:
      KickLocated(located, record);
      break;
  }
}

StatusOr<Body> EngineCore::Do(const ChangeMany& command) {
  pending_.TouchAll();
  DELAYD_RETURN_IF_ERROR(ValidateChange(command, now_.wall));
  DELAYD_ASSIGN_OR_RETURN(const Queue* queue, FindStoredQueue(command.filter.queue));
  DELAYD_ASSIGN_OR_RETURN(BulkCursor cursor, ParseBulkCursor(MarkOf(command), command.cursor));
  if (cursor.fixed && !command.due && command.action != ChangeMany::Action::kKick) {
    return MalformedCursor();  // the cursor belongs to another change
  }
  cursor.fixed = FixedFor(command, cursor.fixed, now_.wall);
  const bool dead = command.filter.state == JobState::kDead;
  // Gathered first: a change may touch the very rows that are scanned.
  std::vector<ListCursor> places;
  bool more = false;
  const auto take = [&](const ListCursor& place) {
    more = places.size() == limits::kBulkRowsMax;
    if (!more) {
      places.push_back(place);
    }
    return !more;
  };
  const DueRange range = KeysDue(DueRangeOf(command.filter));
  DELAYD_RETURN_IF_ERROR(dead ? ScanDeadBefore(cursor.fixed, *queue, cursor.after, take)
                         : command.filter.state == JobState::kReady
                             ? VisitReady(range, queue, cursor.after, take)
                             : ScanPending(range, queue, cursor.after, take));
  const size_t limit = command.limit == 0 ? limits::kBulkJobsDefault : command.limit;
  ChangedMany done;
  for (size_t i = 0; i < places.size(); ++i) {
    DELAYD_ASSIGN_OR_RETURN(const bool matches,
                            ChangeOneOfMany(command, cursor.fixed, places[i].id, &done.changed));
    done.matched += matches ? 1 : 0;
    cursor.after = places[i];
    if (done.matched == limit) {
      more = more || i + 1 < places.size();
      break;
    }
  }
  if (more) {
    done.next_cursor = FormatBulkCursor(MarkOf(command), cursor);
  }
  return Body(std::move(done));
}

}  // namespace delayd::engine
