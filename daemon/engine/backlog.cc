// A queue with more ready jobs than memory has room for must not keep the due jobs of other queues
// on disk.
//
// When all queues together have too many ready jobs, those with the most are cut back to an equal
// share of their oldest jobs, and lag behind from then on: a lagging queue has a frontier of its
// own, before the common one. Its jobs behind that frontier are passed over when the window is
// loaded. They come in pages from by_queue when the queue has worked off half its share, or all
// that it has in memory, and while there is plenty of room. When its frontier meets the common one,
// it is a queue like all others again. So every queue that has a due job has one in memory,
// whatever the others have.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "daemon/engine/engine_core.h"
#include "daemon/engine/slot_sample.h"
#include "storage/keys.h"

namespace delayd::engine {

using storage::Table;

namespace {

// Where room is short, a lagging queue needs no more jobs in memory than its workers take in a
// second.
constexpr size_t kLaggingJobsMax = limits::Bound(65'536, 4);
// Walking over this many rows under way takes less time than loading one row.
constexpr size_t kWalkedPerRow = limits::Bound(64, 2);
// A cut looks at all jobs within this many turns: jobs that arrive meanwhile are beyond the budget.
constexpr size_t kCutStepsMax = limits::Bound(64, 2);
// Cutting a queue takes as long as looking at this many jobs.
constexpr size_t kLooksPerCut = limits::Bound(16, 1);

// A younger backlog may be a rush that is being worked off, page by page: it is not reported.
constexpr Millis kBacklogNoted{std::chrono::minutes(1)};

// The size to which the larger queues must be cut so that `keep` jobs are left in all; smaller
// queues keep what they have. `sizes`: the number of jobs of each queue, ascending, in total more
// than `keep`.
size_t LevelFor(size_t keep, const std::vector<size_t>& sizes) {
  size_t left = keep;
  for (size_t i = 0;; ++i) {
    DELAYD_CHECK(i < sizes.size());
    const size_t share = left / (sizes.size() - i);
    if (sizes[i] > share) {
      return std::max<size_t>(share, 1);
    }
    left -= sizes[i];
  }
}

// Places of a queue's rows on disk, from its own frontier on.
struct QueuePage {
  std::vector<Frontier> places;
  Frontier next;  // of the row behind them; the common frontier if there is none
  WallTime first_behind = kNothingFar;  // in that case: the key of the first row behind it
};

StatusOr<QueuePage> ReadQueuePage(const storage::JobReader& store,
                                  const Queue& queue,
                                  const Frontier& common,
                                  size_t rows_max) {
  QueuePage page{.places = {}, .next = common};
  Status failed;
  const auto take = [&](std::string_view key, std::string_view) {
    const auto parts = storage::ParseByQueueKey(key);
    failed = parts.status();
    if (!failed.ok()) {
      return false;
    }
    const Frontier place(parts->key_due, parts->id);
    if (place >= common) {
      page.first_behind = place.first;
    } else if (page.places.size() == rows_max) {
      page.next = place;
    } else {
      page.places.push_back(place);
      return true;
    }
    return false;
  };
  DELAYD_RETURN_IF_ERROR(
      store.Scan(Table::kByQueue,
                 storage::ByQueueKey(queue.id, queue.frontier->first, queue.frontier->second),
                 storage::ByQueueKey(QueueId{ToInt(queue.id) + 1}, WallTime(), JobId{}),
                 take));
  DELAYD_RETURN_IF_ERROR(failed);
  return page;
}

}  // namespace

// Jobs that workers hold must be in memory, but may not keep everything else out of it.
size_t EngineCore::HeldMax() const {
  const size_t others = jobs_.size() - held_;
  const size_t left = options_.memory_jobs_max - std::min(others, options_.memory_jobs_max);
  return std::max(left, options_.memory_jobs_max / 16);
}

bool EngineCore::CanMakeRoom() const {
  return held_ > std::max(HeldMax() - HeldMax() / 4, queues_.size());
}

// Drops the farthest jobs until `keep` are left. Where all that is left is due, cuts the backlogs
// to a quarter below `keep`, so that the work is not done for a few jobs.
void EngineCore::MakeRoom(size_t keep) {
  if (!DropFarthest(keep)) {
    CutBacklogs(keep - keep / 4);
  }
}

void EngineCore::CutBacklogs(size_t keep) {
  if (held_ <= keep) {
    return;  // more far jobs were dropped than the sample had promised
  }
  std::vector<size_t> sizes;
  queues_.ForEach([&sizes](const Queue& queue) { sizes.push_back(queue.held); });
  std::ranges::sort(sizes);
  const size_t level = LevelFor(keep, sizes);
  const auto fewest = std::ranges::upper_bound(sizes, level);  // of those that are cut
  if (fewest != sizes.end()) {
    cut_ = std::make_unique<BacklogCut>();
    cut_->level = level;
    cut_->slots = jobs_.slot_count();
    cut_->stride = SampleStride(cut_->slots, *fewest);
  }
  leaves_waiting_ = true;
  DropWhatIsFar();
}

// One step of a cut. Jobs that come and go meanwhile make the shares less equal, and no more:
// wherever a queue is cut, its jobs before that place stay, and those behind it are on disk.
void EngineCore::GoOnCutting() {
  BacklogCut& cut = *cut_;
  const size_t looks = std::max<size_t>(options_.sweep_slots, cut.slots / kCutStepsMax);
  const auto end = static_cast<Slot>(std::min<size_t>(cut.slots, cut.next + looks * cut.stride));
  ForEachSampled(cut.next, end, cut.stride, [&](Slot slot) {
    const JobEntry& entry = jobs_[slot];
    const size_t held = IsDroppable(slot) ? queues_[entry.queue()].held : 0;
    if (held <= cut.level) {
      return;
    }
    const auto [at, is_new] = cut.at.emplace(entry.queue(), cut.above.size());
    if (is_new) {
      cut.above.push_back({.queue = entry.queue(),
                           .looks_per_note = LooksPerNote(cut.slots, cut.stride, held),
                           .places = {}});
    }
    BacklogCut::Sampled& queue = cut.above[at->second];
    if (is_new || IsNoted(slot, queue.looks_per_note)) {
      queue.places.emplace_back(entry.key_due(), entry.id());
    }
  });
  if (std::exchange(cut.next, end) < cut.slots) {
    return;
  }
  for (size_t left = looks / kLooksPerCut + 1; left > 0 && !cut.above.empty(); --left) {
    BacklogCut::Sampled& sampled = cut.above.back();
    if (queues_.Has(sampled.queue) && queues_[sampled.queue].held > cut.level) {
      Queue& queue = queues_[sampled.queue];
      const Frontier place = PlaceOfShare(cut.level, queue.held, &sampled.places);
      lagging_.Lag(&queue, std::min(place, queue.frontier.value_or(frontier_)));
    }
    cut.above.pop_back();
  }
  if (cut.above.empty()) {
    cut_.reset();
  }
}

// Moves the common frontier to now. Every queue with jobs on disk lags from where the frontier was,
// and is loaded by itself: for a queue that has a job due now, that is not far.
void EngineCore::LeaveBacklogs() {
  const Frontier now(LatestKeyOfNow() + Millis(1), JobId{});
  queues_.ForEach([this](Queue& queue) {
    if (!queue.frontier && queue.has_more_on_disk()) {
      lagging_.Lag(&queue, frontier_);
    }
  });
  frontier_ = now;
  far_begins_ = FirstRowFrom(now);
  DropWhatIsFar();  // jobs that came due before older ones of their queue were loaded
}

// An equal part for each lagging queue of the room that is left for them, but no more than is of
// use; a quarter stays free for the others.
size_t EngineCore::ShareOfLagging() const {
  const size_t others = held_ - lagging_.held();
  const size_t left = HeldMax() - std::min(others, HeldMax());
  return lagging_.empty()
             ? 0
             : std::clamp<size_t>((left - left / 4) / lagging_.size(), 1, kLaggingJobsMax);
}

size_t EngineCore::RowsWanted(const Queue& queue, size_t share) const {
  if (sweep_) {
    return queue.held == 0 ? 1 : 0;
  }
  // After a clock was set back, its jobs in memory may have to wait while due ones lie behind them.
  const bool starves = queue.ready.empty() && queue.frontier->first <= LatestKeyOfNow();
  if (!HasRoom()) {
    // The first due one among these is taken.
    return starves ? limits::kLoadQueueLookRows : queue.held == 0 ? 1 : 0;
  }
  if (queue.held >= std::max<size_t>(share / 2, 1) && !starves) {
    return 0;
  }
  const size_t missing = share - std::min<size_t>(queue.held, share);
  return std::min(std::max(missing, starves ? limits::kLoadQueuePageRows : 1), HeldMax() - held_);
}

// Whether to load a page that no queue asks for, since priority decides among the jobs in memory
// only. There must be room for a whole page, or each job that leaves would cost a scan.
bool EngineCore::HasPlentyOfRoom() const {
  return !sweep_ && (held_ + limits::kFillPageRows <= HeldMax() - HeldMax() / 4 || RestHasRoom());
}

// Whether there is room for all that the last lagging queue has on disk. A sixteenth stays free, so
// that the next jobs to come do not cut it at once.
bool EngineCore::RestHasRoom() const {
  if (lagging_.size() != 1) {
    return false;
  }
  const Queue& queue = lagging_.First();
  const size_t in_memory = queue.held + queue.leased + queue.damaged;
  const size_t rest = queue.counts.pending - std::min(in_memory, queue.counts.pending);
  return held_ + rest <= HeldMax() - HeldMax() / 16;
}

bool EngineCore::LaggingWant() const {
  return !lagging_.empty() && (LaggingAsk() || HasPlentyOfRoom());
}

// Whether RowsWanted is above zero for any lagging queue, without a look at each. At least one
// lags.
bool EngineCore::LaggingAsk() const {
  if (sweep_) {
    return lagging_.least_held() == 0;
  }
  const bool starves = lagging_.first_hungry() <= LatestKeyOfNow();
  const size_t least = HasRoom() ? ShareOfLagging() / 2 : 0;
  return starves || lagging_.least_held() < std::max<size_t>(least, 1);
}

// Loads a bounded number of rows, one queue after the other. Returns whether more are wanted.
bool EngineCore::LoadLagging() {
  if (!sweep_ && !HasRoom() && !lagging_.empty() && lagging_.least_held() == 0 && CanMakeRoom()) {
    // Makes room for the lagging queues, before the window takes it again.
    MakeRoom(HeldMax() - HeldMax() / 4);
    if (sweep_) {
      return true;
    }
  }
  if (!LaggingWant()) {
    return false;
  }
  const size_t share = ShareOfLagging();
  const bool fills = !LaggingAsk();  // else those that ask come first
  size_t rows_left = fills ? limits::kFillPageRows : limits::kLoadQueuePageRows;
  for (size_t looks = lagging_.size(); looks > 0 && rows_left > 0; --looks) {
    Queue& queue = lagging_.Next();
    const size_t rows = fills ? rows_left : std::min(RowsWanted(queue, share), rows_left);
    if (rows == 0) {
      continue;
    }
    if (const Status loaded = LoadQueuePage(queue, rows); !loaded.ok()) {
      Die(loaded);
      return false;
    }
    // LoadQueuePage has walked over the rows under way, too.
    const size_t walked = pending_.rows_underway() / kWalkedPerRow;
    rows_left -= std::min(rows_left, std::max({rows, limits::kLoadQueueLookRows, walked}));
  }
  return LaggingWant();
}

// As LoadPage, for one lagging queue: its rows from its own frontier to the common one.
Status EngineCore::LoadQueuePage(Queue& queue, size_t rows_max) {
  const Frontier from = *queue.frontier;
  DELAYD_ASSIGN_OR_RETURN(const QueuePage page, ReadQueuePage(store_, queue, frontier_, rows_max));
  Frontier next = page.next;
  WallTime first_behind = page.first_behind;
  lagging_.Lag(&queue, next);
  const size_t held = queue.held;
  for (size_t i = 0; i < page.places.size(); ++i) {
    DELAYD_RETURN_IF_ERROR(LoadQueueRow(page.places[i]));
    if (!HasRoom() && queue.held > held && i + 1 < page.places.size()) {
      next = page.places[i + 1];
      lagging_.Lag(&queue, next);
      break;
    }
  }
  pending_.ForEachPut(Table::kTimers, [&](std::string_view key, std::string_view value) {
    const auto parts = storage::ParseTimerKey(key);
    const auto head = storage::DecodeTimerHead(key, value);
    DELAYD_CHECK(parts.ok() && head.ok());
    const Frontier place(parts->key_due, parts->id);
    if (head->queue != queue.id) {
      return;
    }
    if (place >= frontier_) {
      first_behind = std::min(first_behind, place.first);
    } else if (place >= from && place < next) {
      LoadOwn(*parts, key, value, Overdue::kThroughTheWheel);
    }
  });
  if (next == frontier_) {
    // From now on the common frontier is its own.
    lagging_.CatchUp(&queue);
    far_begins_ = std::min(far_begins_, first_behind);
  }
  return OkStatus();
}

Status EngineCore::LoadQueueRow(const Frontier& place) {
  const storage::FixedKey key = storage::TimerKey(place.first, place.second);
  if (pending_.IsChanging(Table::kTimers, key)) {
    return OkStatus();  // its outcome is what counts
  }
  std::string value;
  const Status got = store_.Get(Table::kTimers, key, &value);
  if (got.code() == StatusCode::kNotFound) {
    incidents_.push_back(DataLoss("job " + std::to_string(ToInt(place.second)) +
                                      " is in the index of its queue and has no record; run "
                                      "'delayctl verify'",
                                  "damaged"));
    return OkStatus();
  }
  DELAYD_RETURN_IF_ERROR(got);
  if (!HasRoom() && place.first <= LatestKeyOfNow() && !jobs_.Find(place.second)) {
    const StatusOr<storage::TimerHead> head = storage::DecodeTimerHead(key, value);
    if (head.ok() && LeftOnDisk::MayStay(MomentOf(DueOf(*head)), now_)) {
      left_on_disk_.Add(place, MomentOf(DueOf(*head)));
      return OkStatus();
    }
  }
  return LoadTimer(
      {.key_due = place.first, .id = place.second}, key, value, Overdue::kThroughTheWheel);
}

// Notes a job in left_on_disk_ if it is keyed before now but not due: in memory it takes the place
// of a due one. Returns whether it did; the caller then drops the job.
bool EngineCore::LeaveIfItWaits(const JobEntry& entry) {
  if (entry.phase() != Phase::kScheduled || entry.key_due() > LatestKeyOfNow()) {
    return false;
  }
  const Moment due = MomentOfTimer(entry);
  if (due.IsOver(now_)) {
    return false;  // it fires in this turn
  }
  left_on_disk_.Add(Frontier(entry.key_due(), entry.id()), due);
  return true;
}

// Every queue that has jobs on disk is loaded again from where the first job was left.
void EngineCore::ReturnToLeft() {
  const Frontier from = std::min(left_on_disk_.from().value_or(frontier_), frontier_);
  left_on_disk_ = LeftOnDisk();
  queues_.ForEach([&](Queue& queue) {
    if (queue.has_more_on_disk()) {
      lagging_.Lag(&queue, std::min(from, queue.frontier.value_or(from)));
    }
  });
  // Jobs keyed behind them are loaded again in their turn. A sweep that is under way begins again,
  // and leaves no more jobs on disk: those could be due before it ends, and so on for ever.
  leaves_waiting_ = false;
  DropWhatIsFar();
}

bool EngineCore::IsLeftBehind(const JobEntry& entry) const {
  const Queue& queue = queues_[entry.queue()];
  return queue.frontier && !IsNear(queue, entry.key_due(), entry.id());
}

Status EngineCore::CheckBacklog() const {
  const WallTime long_due = now_.wall - kBacklogNoted;
  const Queue* first = nullptr;
  size_t count = 0;
  lagging_.ForEach([&](const Queue& queue) {
    if (queue.frontier->first < long_due) {
      ++count;
      first = first == nullptr || *queue.frontier < *first->frontier ? &queue : first;
    }
  });
  if (first == nullptr) {
    return OkStatus();
  }
  return ResourceExhausted(
      "jobs take three quarters of memory.budget or more: due ones of queue " + first->name +
          (count > 1 ? " and " + std::to_string(count - 1) + " others" : "") +
          " wait on disk, and count as scheduled until there is room; " +
          (first->pause ? "it is paused, resume it" : "add workers") + ", or raise the budget",
      "memory_full");
}

// Called with every commit.
WallTime EngineCore::FirstOnDisk() const {
  const WallTime left = left_on_disk_.from() ? left_on_disk_.from()->first : kNothingFar;
  return std::min({far_begins_, left, lagging_.first()});
}

}  // namespace delayd::engine
