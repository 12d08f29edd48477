// P1: an answer that is given before a change is durable is the answer that is given without it.
// After a crash that loses the change, nobody has been told of it.
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/unit/engine/engine_harness.h"

namespace delayd::engine {
namespace {

// A queue with a job in each state; the key of each is its state.
struct AllStates {
  AllStates() {
    for (const JobState state : {JobState::kLeased, JobState::kDead, JobState::kFinished}) {
      jobs[state] = harness.EnqueueOk(Keyed(std::string(JobStateName(state)))).id;
      const LeaseToken token = *harness.LeaseNow().at(0).lease_token;
      if (state == JobState::kDead) {
        harness.Call(Bury{.token = token});
      } else if (state == JobState::kFinished) {
        harness.Call(Ack{token});
      } else {
        held = token;
      }
    }
    jobs[JobState::kScheduled] = harness.EnqueueOk(Keyed("scheduled", 5 * kHour)).id;
    jobs[JobState::kReady] = harness.EnqueueOk(Keyed("ready")).id;
    harness.Wait(Millis(5));
  }

  EngineHarness harness;
  std::map<JobState, JobId> jobs;
  LeaseToken held;  // of the leased one
};

using Request = std::function<Command(const AllStates&)>;

struct Named {
  std::string name;
  Request request;
};

constexpr JobState kStates[] = {JobState::kScheduled,
                                JobState::kReady,
                                JobState::kLeased,
                                JobState::kDead,
                                JobState::kFinished};

JobSpec Again(JobState state, OnConflict rule, std::string payload) {
  const Millis delay = state == JobState::kScheduled ? 5 * kHour : Millis(0);
  JobSpec spec = Keyed(std::string(JobStateName(state)), delay, std::move(payload));
  spec.on_conflict = rule;
  return spec;
}

// LeaseJob of a dead job alone is a change: another hand-out is lost with the daemon in any case.
std::vector<Named> Changes() {
  std::vector<Named> changes = {
      {"lease dead", [](const auto& all) { return LeaseJob{all.jobs.at(JobState::kDead)}; }},
      {"nack", [](const auto& all) { return Nack{.token = all.held, .delay = Millis(0)}; }},
      {"nack 1h", [](const auto& all) { return Nack{.token = all.held, .delay = kHour}; }},
      {"bury", [](const auto& all) { return Bury{.token = all.held}; }},
      {"ack", [](const auto& all) { return Ack{all.held}; }},
      {"give back", [](const auto& all) { return GiveBack{all.held}; }},
      {"pause", [](const auto&) { return Pause{.queue = "default"}; }},
      {"pause new", [](const auto&) { return Pause{.queue = "new", .create = true}; }},
      {"enqueue new", [](const auto&) { return Enqueue{{ForQueue("new", kHour)}}; }},
      {"kick queue", [](const auto&) { return KickQueue{.queue = "default", .count = 5}; }},
      {"cancel many", [](const auto&) { return ChangeMany{.filter = {.queue = "default"}}; }}};
  for (const JobState state : kStates) {
    const std::string name = " " + std::string(JobStateName(state));
    const auto add = [&](const std::string& verb, Request request) {
      changes.push_back({verb + name, std::move(request)});
    };
    add("kick", [=](const auto& all) { return Kick{all.jobs.at(state)}; });
    add("cancel", [=](const auto& all) { return Cancel{all.jobs.at(state)}; });
    add("touch", [=](const auto& all) { return Touch{all.jobs.at(state)}; });
    add("move to now",
        [=](const auto& all) { return Reschedule{.job = all.jobs.at(state), .due = DueAfter{}}; });
    add("move", [=](const auto& all) {
      return Reschedule{.job = all.jobs.at(state), .due = DueAfter{kHour}};
    });
    add("replace",
        [=](const auto&) { return Enqueue{{Again(state, OnConflict::kReplace, "other")}}; });
    add("enqueue",
        [=](const auto&) { return Enqueue{{Again(state, OnConflict::kFail, "other")}}; });
  }
  return changes;
}

// Not a lease, which promises nothing when it finds no job, nor what needs a lease: that ends with
// the daemon.
std::vector<Named> Questions() {
  std::vector<Named> questions = {
      {"list", [](const auto&) { return List{}; }},
      {"list new", [](const auto&) { return List{.queue = "new"}; }},
      {"queue new", [](const auto&) { return ListQueues{.queue = "new"}; }},
      {"queues", [](const auto&) { return ListQueues{}; }},
      {"resume new", [](const auto&) { return Resume{.queue = "new"}; }},
      {"peek ready",
       [](const auto&) {
         return Peek{"default", Peek::Which::kReady};
       }},
      {"peek delayed",
       [](const auto&) {
         return Peek{"default", Peek::Which::kDelayed};
       }},
      {"peek buried", [](const auto&) {
         return Peek{"default", Peek::Which::kBuried};
       }}};
  for (const JobState state : kStates) {
    const std::string name = " " + std::string(JobStateName(state));
    const auto add = [&](const std::string& verb, Request request) {
      questions.push_back({verb + name, std::move(request)});
    };
    for (const bool by_key : {false, true}) {
      const auto ref = [=](const AllStates& all) {
        return by_key ? JobRef(KeyRef{"default", std::string(JobStateName(state))})
                      : JobRef(all.jobs.at(state));
      };
      const std::string how = by_key ? " by key" : " by id";
      add("show" + how, [=](const auto& all) { return Show{ref(all)}; });
      add("kick" + how, [=](const auto& all) { return Kick{ref(all)}; });
      add("cancel" + how, [=](const auto& all) { return Cancel{.job = ref(all), .brief = true}; });
      add("touch" + how, [=](const auto& all) { return Touch{ref(all)}; });
      add("lease" + how, [=](const auto& all) { return LeaseJob{ref(all)}; });
    }
    for (const OnConflict rule : {OnConflict::kFail, OnConflict::kKeep, OnConflict::kReplace}) {
      for (const bool brief : {false, true}) {
        add("enqueue", [=](const auto&) {
          return Enqueue{.jobs = {Again(state, rule, "p")}, .brief = brief};
        });
      }
    }
    add("list", [=](const auto&) { return List{.queue = "default", .state = state}; });
  }
  return questions;
}

std::string TextOf(const Reply& reply) {
  std::string text(reply.status.ok() ? "ok" : reply.status.reason());
  const auto add = [&text](const JobView& job) {
    text += " " + std::to_string(ToInt(job.id)) + " " + std::string(JobStateName(job.state)) + " " +
            FormatUtc(job.due);
  };
  if (const auto* one = std::get_if<Indirect<JobView>>(&reply.body)) {
    add(**one);
  } else if (const auto* list = std::get_if<JobList>(&reply.body)) {
    for (const JobView& job : list->jobs) {
      add(job);
    }
  } else if (const auto* enqueued = std::get_if<Enqueued>(&reply.body)) {
    add(enqueued->items.at(0).job);
  } else if (const auto* ids = std::get_if<EnqueuedIds>(&reply.body)) {
    const auto ended = ids->items.at(0).ended;
    text += ended ? " " + std::string(JobStateName(*ended)) : " alive";
  }
  return text;
}

TEST(AnswersWaitTest, P1NoAnswerTellsOfAChangeThatIsNotDurable) {
  for (const Named& question : Questions()) {
    AllStates without;
    const std::string expected = TextOf(without.harness.Call(question.request(without)));
    for (const Named& change : Changes()) {
      AllStates all;
      all.harness.Send(change.request(all));
      const RequestId asked = all.harness.Send(question.request(all));
      if (all.harness.HasReply(asked)) {
        EXPECT_EQ(TextOf(all.harness.Take(asked)), expected)
            << question.name << " behind " << change.name;
      }
    }
  }
}

}  // namespace
}  // namespace delayd::engine
