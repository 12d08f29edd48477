// tests/simulation/oracle.h — holds what the engine does against the model, after every step.
//
// What:    Before is told every input of the engine, After every output. The oracle keeps the model
// as it is now, one copy
//          for every batch under way, and the copy that is durable: an answer must be the predicted
//          one, and must rest on nothing that is not durable (P1). A crash goes back to a copy.
// Errors:  the first violation stays in violation(); everything after it is meaningless.
// Threads: one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "daemon/engine/engine_figures.h"
#include "storage/job_store.h"
#include "tests/simulation/model.h"

namespace delayd::simulation {

class Oracle {
 public:
  explicit Oracle(const engine::EngineOptions& options)
      : options_(options), model_(options), durable_(options) {}

  // ---- what the engine was told, in the same order ----
  void Executed(engine::RequestId request, const engine::Command& command, const Now& now);
  void Advanced(const Now& now);

  void RefusesEnqueues(bool on) { model_.refuses_enqueues = on; }

  void Durable(uint64_t sequence) { committed_ = sequence; }

  void Committed(uint64_t sequence);
  // The process ended; of the batches under way the first `kept` reached the disk.
  void Crashed(size_t kept);
  void Restarted(const engine::EngineOptions& options,
                 const storage::JobReader& store,
                 const Now& now);

  // ---- what the engine said ----
  void Sealed(const engine::SealedBatch& sealed, const Now& now);
  void Replied(const engine::Reply& reply);
  void CheckCounters(const engine::StatsView& stats);
  // Right after an Advance that had nothing left to do.
  void CheckNextEvent(const std::optional<Micros>& until, const Now& now);
  // The same for what is kept of finished jobs, until the wall clock is set: the engine looks again
  // by the boot clock.
  void CheckNextTrim(const std::optional<Micros>& until, const Now& now);
  void CheckFigures(const engine::EngineFigures& figures, size_t most);
  // Everything is committed and every answer taken.
  void CheckNothingOwed();
  // The rows are exactly what the durable model says (audit.cc).
  void CheckRows(const storage::JobReader& store);
  // To `delayctl verify` too.
  void CheckVerify(const storage::JobReader& store);
  // A second engine on the same store comes to the same state, leases aside, and would hand out the
  // same jobs in the same order.
  void CheckRebuild(const storage::JobReader& store, const Now& now);

  const std::string& violation() const { return violation_; }

  const Model& model() const { return model_; }

  size_t underway() const { return underway_.size(); }

 private:
  // A list is right if it is right for some moment between its request and its answer.
  struct ListCheck {
    engine::List command;
    Model before;  // the durable state when it was asked for
    Model after;   // the state with everything that was decided by then
  };

  struct QueuePage {
    engine::ListQueues command;
    std::map<std::string, QueueId>
        ids;  // when it was asked for, by the rows: those of then or next
  };

  struct Place {
    WallTime at;
    JobId id{};
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  struct Candidate {
    bool required = false;
    Place place;
    bool moving = false;
    uint64_t batch = 0;
    JobView view;
  };

  void Fail(std::string what);
  void SeeClocks(const Now& now);
  // With little memory: what of an answer is learned, not predicted.
  void Relax(const engine::Reply& actual, engine::Reply* expected) const;
  void Learn(const storage::Batch::Op& op, const Now& now);
  // Of all queues those of the page, which go by the numbers that the engine gave them.
  static void CutPage(const QueuePage& page, engine::QueueList* all);
  void CheckMark(WallTime mark);
  void TakeAnswers();
  void CheckList(const ListCheck& check, const engine::Reply& reply);
  void CheckPage(const engine::List& command,
                 const std::map<JobId, Candidate>& candidates,
                 const engine::JobList& page);
  static std::map<JobId, Candidate> Candidates(const ListCheck& check);
  std::string ExplainHandOut(const engine::Reply& reply) const;

  engine::EngineOptions options_;
  Model model_;
  Model durable_;
  std::deque<std::pair<uint64_t, Model>> underway_;
  uint64_t committed_ = 0;
  Micros wall_ahead_{0};  // of the boot clock, at the start
  bool wall_was_set_ = false;
  std::map<engine::RequestId, Expected> expected_;
  std::map<engine::RequestId, std::string> names_;  // of the requests without an answer
  std::map<engine::RequestId, ListCheck> lists_;
  std::map<engine::RequestId, QueuePage> queue_pages_;
  std::string violation_;
};

}  // namespace delayd::simulation
