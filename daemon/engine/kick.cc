// Kick: dead and scheduled jobs become ready now.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "daemon/engine/engine_core.h"

namespace delayd::engine {

using storage::JobEvent;
using storage::JobRecord;

JobState EngineCore::KickLocated(const Located& located, JobRecord* record) {
  const bool dead = located.state == JobState::kDead;
  MoveDue(record, DueAfter{});
  ++record->kicks;
  AddEvent(record, JobEvent::Kind::kKicked, {}, {});
  const WallTime key_due = KeyDue(record->due);
  if (dead) {
    record->attempts = 0;  // or the next failure would bury it again at once
    PutRevivedRows(*record, located.index.at, key_due);
  } else {
    PutMovedRows(*record, located.index.at, key_due);
  }
  ++counters_.kicked;
  return Settle(*record, key_due, located.slot);
}

StatusOr<Body> EngineCore::Do(const Kick& command) {
  DELAYD_ASSIGN_OR_RETURN(const Located located, Locate(command.job));
  if (located.state == JobState::kFinished) {
    return RefuseFinished(located, command.job);
  }
  if (located.state != JobState::kDead && located.state != JobState::kScheduled) {
    return RefuseState(located, command.job, "only dead and scheduled jobs can be kicked");
  }
  DELAYD_ASSIGN_OR_RETURN(JobRecord record, ReadRecord(located));
  const JobState state = KickLocated(located, &record);
  return BodyOf(ViewOf(record, state));
}

StatusOr<Body> EngineCore::Do(const KickQueue& command) {
  DELAYD_ASSIGN_OR_RETURN(const Queue* queue, FindStoredQueue(command.queue));
  const size_t count = std::min<size_t>(command.count, limits::kKickCountMax);
  const bool dead = queue->counts.dead != 0;
  // All are read before the first is kicked: an answer that something is damaged changes nothing.
  std::vector<std::pair<Located, JobRecord>> found;
  std::optional<Located> last;
  // Jobs that cannot be read are passed over, and the next ones taken instead.
  for (size_t damaged = 0; found.size() < count && damaged < limits::kKickCountMax;) {
    const size_t missing = count - found.size();
    const Located* const after = last ? &*last : nullptr;
    DELAYD_ASSIGN_OR_RETURN(
        const std::vector<Located> jobs,
        dead ? OldestDead(*queue, missing, after) : SoonestScheduled(*queue, missing, after));
    for (const Located& located : jobs) {
      StatusOr<JobRecord> record = ReadRecord(located);
      if (record.status().code() == StatusCode::kDataLoss) {
        incidents_.push_back(record.status());
        ++damaged;
        continue;
      }
      DELAYD_RETURN_IF_ERROR(record.status());
      found.emplace_back(located, *std::move(record));
    }
    if (jobs.size() < missing) {
      break;
    }
    last = jobs.back();
  }
  for (auto& [located, record] : found) {
    KickLocated(located, &record);
  }
  pending_.TouchAll();  // that there are no others depends on every change so far
  return Body(Kicked{.count = found.size()});
}

}  // namespace delayd::engine
