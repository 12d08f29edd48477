// Conversations that nobody has thought of: each of some clients that put, reserve, release, bury
// and kick at random, also jobs that they do not have. Played to Debian's beanstalkd and to delayd,
// whose answers must be the same. Where the two differ on purpose (docs/protocol.md) the clients
// keep away: no two jobs have the same priority, no tube is forgotten, and where somebody waits one
// job is kicked at a time.
#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "tests/integration/side_by_side.h"
#include "tests/support/seed.h"

namespace delayd::test {
namespace {

constexpr size_t kConversations = 12;
constexpr size_t kSteps = 80;
constexpr size_t kClients = 4;  // the first one looks on, watches everything and waits for nothing

class Conversation {
 public:
  // `jobs`: so many were put before this one, by both servers' counts.
  Conversation(uint64_t seed, size_t number, size_t jobs)
      : random_(seed + number), first_job_(jobs + 1), next_job_(jobs + 1) {
    for (size_t i = 0; i <= Below(3); ++i) {
      tubes_.push_back("c" + std::to_string(number) + "-" + std::to_string(i));
      Say(0, "watch " + tubes_.back());
    }
    // What is in the tube "default" would still be there in the next conversation.
    for (size_t client = 0; client < kClients; ++client) {
      const std::string& tube = Tube();
      Say(client, "use " + tube + "\r\nwatch " + tube + "\r\nignore default", 3);
    }
    std::iota(priorities_.begin(), priorities_.end(), 0);
    std::shuffle(priorities_.begin(), priorities_.end(), random_);
    while (steps_.size() < kSteps) {
      Any();
    }
    for (size_t client = 1; client < kClients; ++client) {
      if (waits_for_[client]) {
        Feed(client);
      }
    }
  }

  const std::vector<Step>& steps() const { return steps_; }

  size_t jobs() const { return next_job_ - 1; }

 private:
  uint64_t Below(uint64_t bound) {
    return std::uniform_int_distribution<uint64_t>(0, bound - 1)(random_);
  }

  const std::string& Tube() { return tubes_[Below(tubes_.size())]; }

  // Mostly one of the latest of this conversation. Before there is one, an id that nobody has: of
  // earlier conversations' jobs some are ready in beanstalkd and delayed in delayd.
  std::string Job() {
    const size_t jobs = next_job_ - first_job_;
    if (jobs == 0) {
      return " " + std::to_string(next_job_);
    }
    const size_t back = Below(Below(4) == 0 ? jobs : std::min<size_t>(jobs, 6));
    return " " + std::to_string(next_job_ - 1 - back);
  }

  std::string Priority() {
    next_priority_ = (next_priority_ + 1) % priorities_.size();
    return " " + std::to_string(priorities_[next_priority_]);
  }

  // None, or an hour and more: nothing falls due in the middle.
  std::string Delay() { return " " + std::to_string(Below(3) == 0 ? 4'000 + 7 * Below(9'000) : 0); }

  void Say(size_t client, const std::string& line, size_t replies = 1) {
    steps_.push_back({.send = line + "\r\n", .replies = replies, .client = client});
  }

  void Put(size_t client, const std::string& delay) {
    const std::string body = "body of " + std::to_string(next_job_++);
    Say(client, "put" + Priority() + delay + " 600 " + std::to_string(body.size()) + "\r\n" + body);
  }

  void Any() {
    const size_t client = Below(kClients);
    if (waits_for_[client]) {
      return;
    }
    switch (Below(24)) {
      case 0:
        return Say(client, "use " + Tube());
      case 1:
        return Say(client, "watch " + Tube());
      case 2:
        return client == 0 ? void() : Say(client, "ignore " + Tube());
      case 3:
      case 4:
      case 5:
      case 6:
        return Put(client, Delay());
      case 7:
      case 8:
      case 9:
        return Say(client, "reserve-with-timeout 0");
      case 10:
        return Wait(client);
      case 11:
        return Say(client, "delete" + Job());
      case 12:
        return Say(client, "release" + Job() + Priority() + Delay());
      case 13:
        return Say(client, "bury" + Job() + Priority());
      case 14:
        return Say(client, "touch" + Job());
      case 15:
        return Say(client, "kick " + std::to_string(Below(AnyoneWaits() ? 2 : 4)));
      case 16:
        return Say(client, "kick-job" + Job());
      case 17:
        return Say(client, "reserve-job" + Job());
      default:
        return Look(client);
    }
  }

  void Look(size_t client) {
    static constexpr std::array kPeeks = {"peek-ready", "peek-delayed", "peek-buried"};
    switch (Below(7)) {
      case 0:
        return Say(client, kPeeks[Below(kPeeks.size())]);
      case 1:
        return Say(client, "peek" + Job());
      case 2:
        return Say(client, "stats-job" + Job());
      case 3:
        return Say(client, "stats-tube " + Tube());
      case 4:
        return Say(client, "list-tube-used");
      case 5:
        return Say(client, "list-tubes-watched");
      default:
        return Say(client, "pause-tube " + Tube() + (Below(3) == 0 ? " 1000" : " 0"));
    }
  }

  // On one tube alone, for which nobody else waits: who of two is first is another matter. The
  // answer is read at the end; by then it has one.
  void Wait(size_t client) {
    const std::string& tube = Tube();
    if (client == 0 || std::ranges::find(waits_for_, tube) != waits_for_.end()) {
      return;
    }
    waits_for_[client] = tube;
    Say(client, "watch " + tube);
    for (const std::string& other : tubes_) {
      if (other != tube) {
        Say(client, "ignore " + other);
      }
    }
    Say(client, "reserve", 0);
  }

  bool AnyoneWaits() const {
    return std::ranges::any_of(waits_for_, [](const auto& tube) { return tube.has_value(); });
  }

  void Feed(size_t client) {
    Say(0, "use " + *waits_for_[client]);
    Say(0, "pause-tube " + *waits_for_[client] + " 0");
    Put(0, " 0");
    steps_.push_back({.send = "", .client = client});
  }

  std::mt19937_64 random_;
  std::vector<std::string> tubes_;
  std::array<uint32_t, 2'000> priorities_{};
  size_t next_priority_ = 0;
  size_t first_job_;
  size_t next_job_;
  std::array<std::optional<std::string>, kClients> waits_for_;
  std::vector<Step> steps_;
};

// Without what need not be equal, or is not and docs/protocol.md says why.
std::string Normal(const std::string& answer) {
  static const std::regex kOwn(
      "OK [0-9]+|(file|age|time-left|delay|pause-time-left|cmd-pause-tube): [0-9]+|\"");
  return std::regex_replace(answer, kOwn, "");
}

class RandomSideBySideTest : public SideBySideTest {
 protected:
  void CompareAll(const std::vector<Step>& steps) {
    const std::vector<std::string> theirs = Converse(peer_->socket(), steps);
    const std::vector<std::string> ours = Converse(OurSocket(), steps);
    for (size_t i = 0; i < steps.size() && !HasFailure(); ++i) {
      EXPECT_EQ(Normal(ours[i]), Normal(theirs[i]))
          << "step " << i << ", client " << steps[i].client << ": " << steps[i].send;
    }
  }
};

TEST_F(RandomSideBySideTest, WhateverClientsSayIsAnsweredAlike) {
  size_t jobs = 0;
  for (size_t number = 0; number < kConversations && !HasFailure(); ++number) {
    SCOPED_TRACE("DELAYD_SEED=" + std::to_string(Seed()) + ", conversation " +
                 std::to_string(number));
    const Conversation conversation(Seed(), number, jobs);
    CompareAll(conversation.steps());
    jobs = conversation.jobs();
  }
}

}  // namespace
}  // namespace delayd::test
