// tests/checker/watcher.h — the state machines behind Check.
//
// An operation lies between its invoke and its answer; what it did happened somewhere in between.
// `Before(a, b)` is true only when a was over before b began. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/checker/checker.h"

#include <boost/unordered/unordered_flat_map.hpp>

namespace delayd::checker {

// A moment by the shared clock, boot by boot.
struct Moment {
  uint32_t boot = 0;
  int64_t t = 0;
  friend auto operator<=>(const Moment&, const Moment&) = default;
};

// As violations name a job.
inline std::string Name(uint64_t id) {
  return "job " + std::to_string(id);
}

// An end of a job that a client asked for: ack, cancel, bury.
struct End {
  std::optional<Moment> asked;  // the first time somebody sent it
  std::optional<Moment> done;   // the first ok
  uint64_t seq = 0;
};

struct Delivery {
  Moment invoked;
  Moment answered;
  uint64_t seq = 0;
  uint32_t attempt = 0;  // 0: not told; it may have used none
  // Another one may have come later: they overlapped, and not both have told their attempt.
  bool may_not_be_last = false;
  int64_t lease_until = 0;  // at least, on the clock of invoked.boot
  std::string token;
  std::optional<Moment> given_back;  // ack, nack or bury of this token was sent
};

// A hand-out does not come before these. None of a kind: not promised, or nobody can tell, since
// requests that move the job overlap.
struct Promise {
  std::optional<Moment> not_before;
  int64_t not_before_wall = kNotSet;
};

struct WatchedJob {
  std::string payload;
  uint64_t enqueue = 0;         // index of the request, 0: not known
  std::optional<Moment> known;  // the ok of its enqueue
  uint32_t max_attempts = 0;
  Promise promise;
  // The last move that was answered. A hand-out may have come before it, and then only the weakest
  // of all promises so far is certain.
  std::optional<Moment> moved;
  uint64_t moved_seq = 0;
  Promise weakest;
  uint32_t moves_open = 0;  // sent and not answered
  bool moves_overlap = false;
  End ack;
  End cancel;
  uint32_t cancels = 0;  // sent
  End bury;
  // A bury and a kick overlapped, or one of them has no answer: nobody knows which was the last.
  bool bury_untold = false;
  uint32_t kicks_open = 0;       // sent and not answered
  uint32_t kicks = 0;            // each may have begun the attempts anew
  std::optional<Moment> kicked;  // the last answer to one
  bool revived = false;          // a kick was answered, and no bury sent since
  uint64_t deliveries = 0;
  // That told their attempt, since the last kick, without those that may repeat the attempt of the
  // one before since a kill came in between.
  uint64_t deliveries_counted = 0;
  std::optional<std::pair<Moment, Moment>> told;  // sent and answered: the last that told it
  uint32_t attempt_max = 0;
  std::optional<Delivery> last;
  std::string final_state;
};

struct WatchedKey {
  uint64_t id = 0;
  std::string content;
  Moment answered;
};

// A request and, once it is there, its answer.
struct Request {
  Event event;
  std::optional<Phase> answer;
};

class Watcher {
 public:
  explicit Watcher(const CheckOptions& options) : options_(options) {}

  void See(Event event);
  Verdict Finish();

 private:
  void Fail(const char* invariant, uint64_t line, std::string what);
  void Invoked(Event event);
  void Answered(const Event& event);
  void Enqueued(Request* request, const Event& answer);
  void CheckKey(const JobEntry& spec, uint64_t id, const Event& invoke, const Event& answer);
  void Delivered(const Request& request, const Event& answer, const JobEntry& entry);
  void CountTold(WatchedJob* job, const Delivery& now) const;
  void KeepLast(WatchedJob* job, Delivery now) const;
  void CheckPromise(const WatchedJob& job,
                    const Event& invoke,
                    const Event& answer,
                    const JobEntry& entry);
  void CheckEnded(const WatchedJob& job, const Delivery& now, const Event& answer, uint64_t id);
  void CheckRepeated(const WatchedJob& job, const Delivery& now, const Event& answer, uint64_t id);
  void LeaseOpAnswered(const Request& request, const Event& answer);
  void Ended(End* end, const WatchedJob& job, const Event& answer, const char* invariant);
  static void KickSent(WatchedJob* job);
  void KickAnswered(const Request& request, const Event& answer);
  void CancelAnswered(const Request& request, const Event& answer);
  void Shown(const Request& request, const Event& answer);
  void MoveSent(WatchedJob* job, const JobEntry& spec, const Event& invoke);
  void MoveAnswered(const Event& invoke, const Event& answer);
  void Final(const Event& event);
  // watcher_disk.cc
  void NoteAnswer(const Event& answer);
  void Disk(const Event& event);
  void CompareWithFinal(const Event& event);
  void CheckOnDisk(uint64_t id, const WatchedJob& job, const JobEntry* row, uint64_t line);
  uint64_t IdOf(const JobEntry& entry) const;
  void Sent(const Request& request);
  bool KilledBetween(const Moment& from, const Moment& to) const;
  WatchedJob* Surface(uint64_t id, const JobEntry& entry, uint64_t line);
  void CheckBatches();
  void CheckJobsAtEnd();

  CheckOptions options_;
  Verdict verdict_;
  boost::unordered_flat_map<uint64_t, WatchedJob> jobs_;
  boost::unordered_flat_map<uint64_t, uint64_t> open_;  // proc and n -> index of the request
  std::vector<Request> requests_ = std::vector<Request>(1);

  // By payload: the requests that enqueue it. The first counts for the promise: whichever of them
  // took effect, none was sent earlier.
  struct Senders {
    uint64_t first = 0;
    uint64_t last = 0;
  };

  boost::unordered_flat_map<std::string, Senders> by_payload_;
  std::map<std::pair<std::string, std::string>, WatchedKey> keys_;
  std::vector<Moment> kills_;
  std::vector<int64_t> lateness_;
  int64_t key_retention_ = kNotSet;
  uint64_t unknown_leases_ = 0;
  bool final_ = false;
  // The latest commit that an answer rests on, and the line of that answer.
  uint64_t answered_seq_ = 0;
  uint64_t answered_line_ = 0;
  // What the daemon listed, until somebody sends it a request.
  std::optional<std::vector<JobEntry>> listed_;
};

}  // namespace delayd::checker
