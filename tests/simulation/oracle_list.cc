// Lists: nothing twice, nothing missing, nothing that is not there (I15).
#include <algorithm>

#include "daemon/engine/list_page.h"
#include "tests/simulation/compare.h"
#include "tests/simulation/oracle.h"

namespace delayd::simulation {
namespace {

bool Matches(const Model& model, const ModelJob& job, const engine::List& command) {
  const bool dead = job.state == JobState::kDead;
  const bool state_matches = command.state ? job.state == *command.state : !dead;
  return state_matches && (!command.queue || job.spec->queue == *command.queue) &&
         job.spec->key.starts_with(command.key_prefix) && model.queues().at(job.spec->queue).stored;
}

bool InRange(WallTime due, const engine::List& command) {
  return (!command.due_after || due >= *command.due_after) &&
         (!command.due_before || due < *command.due_before);
}

}  // namespace

std::map<JobId, Oracle::Candidate> Oracle::Candidates(const ListCheck& check) {
  std::map<JobId, Candidate> candidates;
  for (const auto& [id, job] : check.after.jobs()) {
    if (!Matches(check.after, job, check.command) ||
        !InRange(check.after.DueByNow(job), check.command)) {
      continue;
    }
    Candidate candidate{
        .place = {job.place, id}, .batch = job.batch, .view = check.after.ViewOf(job, job.state)};
    if (check.command.with_payload) {
      candidate.view.payload = job.spec->payload;
      candidate.view.history = job.events;
    }
    const auto before = check.before.jobs().find(id);
    const bool same_table =
        before != check.before.jobs().end() &&
        (before->second.state == JobState::kDead) == (job.state == JobState::kDead);
    if (same_table) {
      candidate.required = InRange(check.after.DueByNow(before->second), check.command);
      candidate.moving = before->second.place != job.place;
      // Leased jobs are listed from memory, the others from their durable rows.
      candidate.place.at =
          check.command.state == JobState::kLeased ? job.place : before->second.place;
    }
    candidates.emplace(id, std::move(candidate));
  }
  if (check.command.state != JobState::kFinished) {
    return candidates;
  }
  for (const auto& [place, done] : check.after.done()) {
    if (!check.after.IsKept(done)) {
      continue;
    }
    Candidate candidate{.place = {place.first, place.second}, .batch = done.batch};
    candidate.required = check.before.done().contains(place);
    if (done.story) {
      candidate.view = check.after.ViewOf(*done.story, JobState::kFinished);
      candidate.view.reserves += done.cancelled ? 0 : 1;
      if (check.command.with_payload) {
        candidate.view.history = done.story->events;
      }
      if (check.command.with_payload &&
          done.story->spec->payload.size() <= limits::kInlinePayloadBytesMax) {
        candidate.view.payload = done.story->spec->payload;
      }
    }
    candidate.view.id = place.second;
    candidate.view.queue = done.queue;
    candidate.view.key = done.key;
    candidate.view.state = JobState::kFinished;
    candidate.view.due = done.due;
    candidate.view.created = done.created;
    candidate.view.attempt = done.attempts;
    candidate.view.finished = place.first;
    candidate.view.outcome = done.cancelled ? "cancelled" : "acked";
    if ((!check.command.queue || done.queue == *check.command.queue) &&
        done.key.starts_with(check.command.key_prefix) && InRange(done.due, check.command)) {
      candidates.emplace(place.second, std::move(candidate));
    }
  }
  return candidates;
}

void Oracle::CutPage(const QueuePage& page, engine::QueueList* all) {
  const engine::ListQueues& command = page.command;
  if (command.queue) {
    return;
  }
  const auto id_of = [&page](const engine::QueueView& view) {
    return ToInt(page.ids.at(view.name));
  };
  const uint64_t first = ToInt(engine::ParseListCursor(command.cursor)->id);
  std::erase_if(all->queues, [&](const auto& view) { return id_of(view) < first; });
  std::ranges::sort(all->queues, {}, id_of);
  const size_t limit = command.limit != 0 ? command.limit : limits::kListLimitMax;
  if (all->queues.size() > limit) {
    all->next_cursor = engine::FormatListCursor({.at = {}, .id = JobId{id_of(all->queues[limit])}});
    all->queues.resize(limit);
  }
}

void Oracle::CheckList(const ListCheck& check, const engine::Reply& reply) {
  const engine::List& command = check.command;
  if (!reply.status.ok()) {
    const auto queue =
        command.queue ? check.after.queues().find(*command.queue) : check.after.queues().end();
    const bool unknown_queue =
        command.queue && (queue == check.after.queues().end() || !queue->second.stored);
    if (!(unknown_queue && reply.status.code() == StatusCode::kNotFound) &&
        !(command.state == JobState::kDead && !command.queue) &&
        reply.status.reason() != "invalid_limit") {
      Fail("list: refused with " + reply.status.message());
    }
    return;
  }
  const auto* page = std::get_if<engine::JobList>(&reply.body);
  if (page == nullptr) {
    return Fail("list: the answer has a body of another kind");
  }
  const std::map<JobId, Candidate> candidates = Candidates(check);
  CheckPage(command, candidates, *page);
  for (const JobView& view : page->jobs) {
    if (candidates.contains(view.id) && candidates.at(view.id).batch > committed_) {
      Fail("P1: list shows a change of job " + std::to_string(ToInt(view.id)) +
           " that is not durable");
    }
  }
}

void Oracle::CheckPage(const engine::List& command,
                       const std::map<JobId, Candidate>& candidates,
                       const engine::JobList& page) {
  const auto cursor = engine::ParseListCursor(command.cursor);
  const Place after{cursor->at, cursor->id};
  const size_t limit = command.limit == 0 ? limits::kListLimitDefault : command.limit;
  if (page.jobs.size() > limit) {
    return Fail("list: a page of " + std::to_string(page.jobs.size()) + " jobs");
  }
  std::optional<Place> last;
  for (const JobView& view : page.jobs) {
    const auto found = candidates.find(view.id);
    if (found == candidates.end()) {
      return Fail("list: shows what should not be there: " + Describe(view));
    }
    const Candidate& candidate = found->second;
    if (std::string difference = Difference(candidate.view, view); !difference.empty()) {
      return Fail("list: " + difference);
    }
    if (last && candidate.place <= *last) {
      return Fail("list: out of order or twice: " + Describe(view));
    }
    if (!command.cursor.empty() && candidate.place <= after) {
      return Fail("list: the page before had it: " + Describe(view));
    }
    last = candidate.place;
  }
  for (const auto& [id, candidate] : candidates) {
    const bool passed = page.next_cursor.empty() || (last && candidate.place < *last);
    const bool before_page = !command.cursor.empty() && candidate.place <= after;
    const bool listed =
        std::ranges::any_of(page.jobs, [id = id](const JobView& view) { return view.id == id; });
    if (candidate.required && passed && !before_page && !listed) {
      return Fail("list: a hole where this should be" +
                  std::string(candidate.moving ? " (it moves with a batch under way): " : ": ") +
                  Describe(candidate.view));
    }
  }
}

}  // namespace delayd::simulation
