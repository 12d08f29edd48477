// Lists: of very many jobs, page by page, and on a terminal.
#include <fcntl.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/http_call.h"
#include "tests/support/daemon.h"

#include <sys/wait.h>

namespace delayd::test {
namespace {

// What a command prints on a terminal of so many columns, with stderr somewhere else.
std::string OnTerminal(ProcessOptions options, uint16_t columns) {
  std::vector<char*> argv;
  for (std::string& word : options.argv) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  winsize size{};
  size.ws_row = 40;
  size.ws_col = columns;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    for (const auto& [name, value] : options.env) {
      setenv(name.c_str(), value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
    }
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  std::string shown;
  std::array<char, 4096> buffer;  // NOLINT: filled by read
  for (ssize_t got = 0; (got = read(terminal, buffer.data(), buffer.size())) > 0;) {
    shown.append(buffer.data(), static_cast<size_t>(got));
  }
  close(terminal);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << shown;
  return shown;
}

TEST(ListTest, AHundredThousandPendingJobsPageWithoutDoublesOrHoles) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  for (int batch = 0; batch < 100; ++batch) {
    std::string lines;
    for (int i = 0; i < 1000; ++i) {
      const int number = batch * 1000 + i;
      lines += R"({"queue":")" + std::string(number % 10 == 0 ? "few" : "many") + R"(","delay":")" +
               std::to_string(60 + number * 7919 % 3600) + R"(s","payload":")" +
               std::to_string(number) + "\"}\n";
    }
    const protocol::HttpResponse answer =
        HttpCall(daemon, "POST", "/v1/jobs", lines, "application/x-ndjson");
    ASSERT_EQ(answer.status, 201) << answer.body;
  }
  for (const auto& [queue, expected] : {std::pair("few", 10'000U), std::pair("many", 90'000U)}) {
    std::istringstream ids(daemon.CtlOk({"list", "--queue", queue, "--all", "-q"}));
    std::set<std::string> seen;
    for (std::string id; std::getline(ids, id);) {
      EXPECT_TRUE(seen.insert(id).second) << id;
    }
    EXPECT_EQ(seen.size(), expected);
  }
}

TEST(ListTest, NamesAreCutToTheTerminalThatShowsThem) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string name(120, 'n');
  daemon.CtlOk({"enqueue", "--queue", name, "--in", "1h", "x"});
  EXPECT_THAT(OnTerminal(daemon.CtlOptions({"queues"}), 200), ::testing::HasSubstr(name));
  EXPECT_THAT(OnTerminal(daemon.CtlOptions({"queues"}), 100),
              ::testing::HasSubstr("\n" + std::string(51, 'n') + "...  1 "));
}

}  // namespace
}  // namespace delayd::test
