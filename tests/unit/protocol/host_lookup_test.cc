#include "protocol/host_lookup.h"

#include <unistd.h>

#include <atomic>
#include <future>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "tests/support/no_threads.h"

#include <sys/eventfd.h>

namespace delayd::protocol {
namespace {

BootTime HereIn(Millis time) {
  return SystemClock().Sample().boot + time;
}

// A name server that says nothing until it is let.
class SilentServer {
 public:
  HostLookup::Resolver resolver() {
    return [state = state_](
               const char* /*host*/, const char* port, const addrinfo* hints, addrinfo** found) {
      if ((hints->ai_flags & AI_NUMERICHOST) != 0) {
        return EAI_NONAME;
      }
      ++state->asked;
      state->may_answer.wait();
      return state->known ? getaddrinfo("127.0.0.1", port, hints, found) : EAI_NONAME;
    };
  }

  void Answer(bool known) {
    state_->known = known;
    state_->go.set_value();
  }

  int asked() const { return state_->asked; }

 private:
  // Of the thread that is left behind, too.
  struct State {
    std::atomic<int> asked = 0;
    std::atomic<bool> known = false;
    std::promise<void> go;
    std::shared_future<void> may_answer = go.get_future().share();
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

TEST(HostLookupTest, ASilentNameServerIsLeftAloneAtTheDeadlineAndAskedOnce) {
  SilentServer server;
  HostLookup lookup(server.resolver());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(lookup.Find("jobs.example", "1", HereIn(Millis(10)), -1).status().reason(),
              "timed_out");
  }
  server.Answer(true);
  const auto found = lookup.Find("jobs.example", "1", HereIn(Millis(60'000)), -1);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ((*found)->ai_family, AF_INET);
  EXPECT_EQ(server.asked(), 1);
}

TEST(HostLookupTest, WhoeverAskedMayBeGoneWhenTheAnswerComes) {
  SilentServer server;
  const int fd = eventfd(1, EFD_CLOEXEC);
  EXPECT_EQ(HostLookup(server.resolver())
                .Find("jobs.example", "1", HereIn(Millis(3'600'000)), fd)
                .status()
                .reason(),
            "timed_out");
  close(fd);
  server.Answer(true);
}

// An abort would leave a worker's handlers behind.
TEST(HostLookupTest, WhereNoThreadCanBeMadeTheNameIsFoundWithoutOne) {
  SilentServer server;
  server.Answer(true);
  const test::NoThreads refused;
  const auto found = HostLookup(server.resolver()).Find("jobs.example", "1", HereIn(Millis(0)), -1);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ((*found)->ai_family, AF_INET);
}

TEST(HostLookupTest, WhatTheResolverSaysIsPassedOn) {
  SilentServer server;
  server.Answer(false);
  const auto found =
      HostLookup(server.resolver()).Find("jobs.example", "1", HereIn(Millis(60'000)), -1);
  EXPECT_EQ(found.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(found.status().message(), gai_strerror(EAI_NONAME));
}

TEST(HostLookupTest, AnAddressInFiguresIsThereAtOnce) {
  for (const char* const host : {"127.0.0.1", "::1"}) {
    EXPECT_TRUE(HostLookup().Find(host, "1", HereIn(Millis(0)), -1).ok()) << host;
  }
}

}  // namespace
}  // namespace delayd::protocol
