#include "cli/last_words.h"

#include <cerrno>
#include <csignal>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <gtest/gtest.h>

#include "cli/exit_code.h"

namespace delayd::cli {
namespace {

// In a thread: nobody catches it there.
template <typename Error>
void EndCtlBy(const Error& error) {
  InstallLastWords();
  std::thread([&error] { throw error; }).join();
}

TEST(CtlLastWordsTest, ALackOfMemoryOrOfThreadsIsAFailureWithACure) {
  EXPECT_EXIT(EndCtlBy(std::bad_alloc()),
              ::testing::ExitedWithCode(kExitFailed),
              "^delayctl: no memory is left; .*ulimit -v.*: std::bad_alloc\n$");
  EXPECT_EXIT(EndCtlBy(std::system_error(EAGAIN, std::generic_category())),
              ::testing::ExitedWithCode(kExitFailed),
              "^delayctl: no thread could be made; .*ulimit -u.*temporarily unavailable\n$");
}

TEST(CtlLastWordsTest, AMistakeIsToldAndAborts) {
  EXPECT_EXIT(EndCtlBy(std::logic_error("seven")),
              ::testing::KilledBySignal(SIGABRT),
              "^delayctl: an error that nobody expects; .*: seven\n$");
}

}  // namespace
}  // namespace delayd::cli
