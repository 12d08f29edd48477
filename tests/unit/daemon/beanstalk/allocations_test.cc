// How often a command of a pipeline asks for memory, from its bytes to the bytes of its answer.
// Commits are the store's and not counted; what grows once and is used again is there beforehand.
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/clock.h"
#include "daemon/beanstalk/session.h"
#include "daemon/engine/engine.h"
#include "storage/memory_job_store.h"

namespace {

uint64_t allocations = 0;

}  // namespace

// Replaced for this program alone. Seen through, g++ 12 takes free for a mistake.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) {
    return memory;
  }
  throw std::bad_alloc();
}

[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}

[[gnu::noinline]] void operator delete(void* memory, size_t /*bytes*/) noexcept {
  std::free(memory);
}

namespace delayd::beanstalk {
namespace {

class AllocationsTest : public ::testing::Test {
 protected:
  static constexpr int kCommands = 200;

  AllocationsTest() : hub_({.job_bytes_max = 65535, .version = "1", .started = Clock().boot}) {
    auto loaded = engine::Engine::Load({.boot_id = 7}, store_, Clock());
    DELAYD_CHECK(loaded.ok());
    engine_ = std::move(loaded).value();
    Commit();
  }

  static Now Clock() {
    return {.wall = WallFromMillis(1'800'000'000'000), .boot = BootFromMillis(1'000'000)};
  }

  // For each of the commands of one pipeline.
  double Each(const std::function<std::string(int)>& command) {
    std::string input;
    for (int i = 0; i < kCommands; ++i) {
      input += command(i);
    }
    output_.clear();
    uint64_t counted = 0;
    const auto count = [&counted](const auto& work) {
      const uint64_t before = allocations;
      work();
      counted += allocations - before;
    };
    count([&] { session_.Receive(input); });
    // A reserve holds up what is behind it until it is answered.
    for (bool more = true; more; more = session_.has_more()) {
      count([&] {
        while (std::optional<SessionRequest> request = session_.Next(Clock())) {
          tags_.push_back(request->tag);
          engine_->Execute(next_request_++, std::move(request->command), Clock());
        }
      });
      const std::vector<engine::Reply> replies = Commit();
      count([&] {
        for (const engine::Reply& reply : replies) {
          session_.Answer(tags_[reply.request], reply);
        }
      });
    }
    output_ += session_.output();
    session_.Sent(session_.output().size());
    return static_cast<double>(counted) / kCommands;
  }

  std::vector<engine::Reply> Commit() {
    while (engine_->Advance(Clock())) {
    }
    while (const auto sealed = engine_->Seal(Clock())) {
      DELAYD_CHECK(store_.Commit(*sealed->batch).ok());
      engine_->Committed(sealed->sequence);
    }
    return engine_->TakeReplies();
  }

  Hub hub_;
  storage::MemoryJobStore store_;
  std::unique_ptr<engine::Engine> engine_;
  BeanstalkSession session_{&hub_};
  std::vector<uint64_t> tags_;
  engine::RequestId next_request_ = 0;
  std::string output_;
};

TEST_F(AllocationsTest, OfThePutReserveAndDeleteOfAJob) {
  const std::string body(256, 'x');
  const auto put = [&body](int /*i*/) { return "put 0 0 60 256\r\n" + body + "\r\n"; };
  const auto reserve = [](int /*i*/) { return std::string("reserve-with-timeout 0\r\n"); };
  int first = 1;
  const auto remove = [&first](int i) { return "delete " + std::to_string(first + i) + "\r\n"; };
  tags_.reserve(100'000);
  double put_each = 0;
  double reserve_each = 0;
  double delete_each = 0;
  for (int round = 0; round < 20; ++round) {
    put_each = Each(put);
    EXPECT_NE(output_.find("INSERTED"), std::string::npos);
    reserve_each = Each(reserve);
    EXPECT_EQ(output_.find("TIMED_OUT"), std::string::npos);
    delete_each = Each(remove);
    EXPECT_EQ(output_.find("NOT_FOUND"), std::string::npos);
    first += kCommands;
  }
  // What grows now and then, by doubling, is below a half. A put asks for the one job of its
  // command and for its body; a reserve for the names of its tubes, for the body, for the one job
  // of its answer, and here, where each ends a turn, for the turn's list of answers.
  EXPECT_LT(put_each, 2.5);
  EXPECT_LT(reserve_each, 4.5);
  EXPECT_LT(delete_each, 0.5);
}

}  // namespace
}  // namespace delayd::beanstalk
