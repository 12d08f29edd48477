#include "daemon/last_words.h"

#include <csignal>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <gtest/gtest.h>

#include "daemon/exit_codes.h"
#include "daemon/log.h"

namespace delayd {
namespace {

// In a thread, as RocksDB's are: nobody catches it there.
template <typename Error>
void EndBy(const Error& error) {
  log::Start({});
  InstallLastWords();
  std::thread([&error] { throw error; }).join();
}

TEST(LastWordsTest, ALackOfThreadsNamesTheLimitAndIsAFailedStart) {
  EXPECT_EXIT(EndBy(std::system_error(EAGAIN, std::generic_category())),
              ::testing::ExitedWithCode(kExitFailed),
              "no thread could be made.*TasksMax=.*processes_max=([0-9]+|unlimited)");
}

TEST(LastWordsTest, ALackOfMemoryNamesTheLimit) {
  EXPECT_EXIT(EndBy(std::bad_alloc()),
              ::testing::ExitedWithCode(kExitFailed),
              "no memory is left.*LimitDATA=.*memory.budget.*memory_max=([0-9]+|unlimited) "
              "data_max=([0-9]+|unlimited)");
}

TEST(LastWordsTest, AMistakeIsToldAndAborts) {
  EXPECT_EXIT(EndBy(std::logic_error("seven")),
              ::testing::KilledBySignal(SIGABRT),
              "nobody expects.*seven");
}

}  // namespace
}  // namespace delayd
