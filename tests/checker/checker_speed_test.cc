#include <cstdio>
#include <ctime>
#include <string>

#include <gtest/gtest.h>

#include "tests/checker/checker.h"

namespace delayd::checker {
namespace {

// What `jobs` jobs leave behind, eight clients at a time: enqueue, lease, ack, six events each.
std::string GoodHistory(int jobs) {
  std::string text;
  char line[400];
  for (int id = 1; id <= jobs; ++id) {
    const int t = id * 10;
    const int proc = id % 8;
    std::snprintf(
        line,
        sizeof line,
        R"({"t":%d,"w":%d,"proc":%d,"n":%d,"phase":"invoke","op":"enqueue","jobs":[{"queue":"orders","key":"order:%d","payload":"p%d","delay":0}]}
{"t":%d,"proc":%d,"n":%d,"phase":"ok","seq":%d,"jobs":[{"id":%d,"existed":false}]}
)",
        t,
        t,
        proc,
        id * 3,
        id,
        id,
        t + 5,
        proc,
        id * 3,
        id,
        id);
    text += line;
    std::snprintf(line,
                  sizeof line,
                  R"({"t":%d,"proc":%d,"n":%d,"phase":"invoke","op":"lease"}
{"t":%d,"proc":%d,"n":%d,"phase":"ok","jobs":[{"id":%d,"payload":"p%d","token":"%d-1-%x","attempt":1,"lease":60000,"late":3}]}
)",
                  t + 6,
                  proc,
                  id * 3 + 1,
                  t + 20,
                  proc,
                  id * 3 + 1,
                  id,
                  id,
                  id,
                  static_cast<unsigned>(id));
    text += line;
    std::snprintf(
        line,
        sizeof line,
        R"({"t":%d,"proc":%d,"n":%d,"phase":"invoke","op":"ack","jobs":[{"id":%d,"token":"%d-1-%x"}]}
{"t":%d,"proc":%d,"n":%d,"phase":"ok","seq":%d}
)",
        t + 21,
        proc,
        id * 3 + 2,
        id,
        id,
        static_cast<unsigned>(id),
        t + 30,
        proc,
        id * 3 + 2,
        id);
    text += line;
  }
  return text + R"({"t":2000000000,"phase":"ok","op":"final","jobs":[]})";
}

// Nobody measures a sanitizer.
#if defined(DELAYD_SANITIZED)
constexpr uint64_t kJobs = 10'000;
#else
constexpr uint64_t kJobs = 167'000;
#endif

// What takes the square of them meets the time limit of all tests; how long it takes is printed.
TEST(CheckerTest, AMillionEventsAreCheckedInOnePass) {
  const std::string text = GoodHistory(kJobs);
  const std::clock_t start = std::clock();  // of this process: other work must not count
  History history;
  ASSERT_TRUE(ParseHistory(text, &history).ok());
  const Verdict verdict = Check(std::move(history));
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf("%llu events in %.2f s\n", static_cast<unsigned long long>(verdict.events), seconds);
  EXPECT_GT(verdict.events, 6 * kJobs);
  EXPECT_EQ(verdict.violation_count, 0U)
      << (verdict.violations.empty() ? "" : verdict.violations[0].what);
  EXPECT_EQ(verdict.acked, kJobs);
}

}  // namespace
}  // namespace delayd::checker
