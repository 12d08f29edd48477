#include "daemon/command_line.h"

#include <unistd.h>

#include <array>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

#include <sys/stat.h>

namespace delayd {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class CommandLineTest : public ::testing::Test {
 protected:
  void WriteFile(const std::string& yaml) { test::WriteFile(file_, yaml); }

  CommandLine Read(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "delayd");
    return ReadCommandLine(static_cast<int>(arguments.size()),
                           arguments.data(),
                           [this](const std::string& name) -> const char* {
                             const auto found = environment_.find(name);
                             return found == environment_.end() ? nullptr : found->second.c_str();
                           });
  }

  const test::TempDir dir_;
  const std::string file_ = dir_.Sub("delayd.yaml");
  std::map<std::string, std::string> environment_;
};

TEST_F(CommandLineTest, FlagGoesBeforeEnvironmentBeforeFileBeforeDefault) {
  WriteFile("data_dir: /file\nlog: { level: warn, format: json }\n");
  environment_["DELAYD_CONFIG"] = file_;
  EXPECT_EQ(Read({}).config.data_dir, "/file");
  environment_["DELAYD_DATA_DIR"] = "/environment";
  EXPECT_EQ(Read({}).config.data_dir, "/environment");
  const CommandLine line = Read({"--data-dir", "/flag"});
  EXPECT_EQ(line.action, CommandLine::Action::kRun);
  EXPECT_EQ(line.config.data_dir, "/flag");
  EXPECT_EQ(line.config.log.level, log::Level::kWarn);
  EXPECT_EQ(line.config.log.format, log::Format::kJson);
  EXPECT_EQ(line.config.api.socket, "/run/delayd/delayd.sock");
}

TEST_F(CommandLineTest, AFlagWithoutItsValueIsNamed) {
  EXPECT_THAT(Read({"--config"}).errors,
              ElementsAre("delayd: --config needs a value; 'delayd --help' lists the flags"));
}

TEST_F(CommandLineTest, EmptyValueOfAFlagTurnsASocketOff) {
  for (const std::vector<const char*>& empty :
       {std::vector<const char*>{"--api-socket", ""}, {"--api-socket="}}) {
    std::vector<const char*> words = empty;
    words.push_back("--api-listen=127.0.0.1:0");
    const CommandLine line = Read(words);
    EXPECT_THAT(line.errors, IsEmpty());
    EXPECT_EQ(line.config.api.socket, "");
    EXPECT_EQ(line.config.api.listen, "127.0.0.1:0");
  }
}

TEST_F(CommandLineTest, LastOfARepeatedFlagWins) {
  EXPECT_EQ(Read({"--data-dir", "/a", "--data-dir", "/b"}).config.data_dir, "/b");
}

TEST_F(CommandLineTest, NamedFileThatDoesNotExistIsAnError) {
  const CommandLine line = Read({"--config", "/nonexistent/delayd.yaml"});
  EXPECT_EQ(line.action, CommandLine::Action::kRefuse);
  EXPECT_THAT(line.errors,
              ElementsAre("/nonexistent/delayd.yaml: cannot read the configuration: No such file "
                          "or directory; check the path and its permissions"));
}

TEST_F(CommandLineTest, DirectoryIsNoConfiguration) {
  EXPECT_THAT(Read({"--config", "/"}).errors, ElementsAre(HasSubstr("it is not a file")));
}

// $UNSET must not become the defaults.
TEST_F(CommandLineTest, AnEmptyNameOfAFileIsAnErrorAsItIsForEveryOtherPath) {
  EXPECT_THAT(Read({"--config", ""}).errors,
              ElementsAre(StartsWith("--config: expected the path of a file, found nothing")));
  environment_["DELAYD_CONFIG"] = "";
  EXPECT_THAT(Read({}).errors, ElementsAre(StartsWith("DELAYD_CONFIG: expected the path")));
  WriteFile("data_dir: /file\n");
  EXPECT_EQ(Read({"--config", file_.c_str()}).config.data_dir, "/file");
}

// It opens, and its first byte cannot be read: no reason to go on with the defaults.
TEST_F(CommandLineTest, AFileThatCannotBeReadToItsEndIsNoConfiguration) {
  EXPECT_THAT(
      Read({"--config", "/proc/self/mem"}).errors,
      ElementsAre(HasSubstr("/proc/self/mem: cannot read the configuration: Input/output")));
}

TEST_F(CommandLineTest, AnEndlessFileIsNotReadToItsEnd) {
  EXPECT_THAT(Read({"--config", "/dev/zero"}).errors, ElementsAre(HasSubstr("larger than 1 MiB")));
  const std::string full = "data_dir: /file\n" + std::string((size_t{1} << 20) - 16, '#');
  WriteFile(full + "#");
  EXPECT_THAT(Read({"--config", file_.c_str()}).errors,
              ElementsAre(HasSubstr("larger than 1 MiB")));
  WriteFile(full);
  EXPECT_EQ(Read({"--config", file_.c_str()}).config.data_dir, "/file");
}

TEST_F(CommandLineTest, APipeIsKnownAsOne) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "data_dir: /p", 12), 12);
  ::close(ends[1]);
  const CommandLine line = Read({"--config", ("/dev/fd/" + std::to_string(ends[0])).c_str()});
  ::close(ends[0]);
  EXPECT_EQ(line.config.data_dir, "/p");
  EXPECT_TRUE(line.config_is_stream);
  EXPECT_FALSE(Read({"--config", "/dev/null"}).config_is_stream);
}

// As a reload finds it where nobody named the file, and it was moved away: the caps of all queues
// would be off, and what they keep of finished jobs forgotten.
TEST_F(CommandLineTest, AFileThatHasGoneIsNotReadAgainAsTheDefaults) {
  WriteFile("defaults: { concurrency: 1 }\n");
  const CommandLine first = Read({"--config", file_.c_str()});
  const CommandLine gone = ReadAgain(first, [] { return CommandLine(); });
  EXPECT_EQ(gone.action, CommandLine::Action::kRefuse);
  EXPECT_THAT(gone.errors, ElementsAre(StartsWith(file_ + " is not there any more; ")));

  WriteFile("defaults: { concurrency: 2 }\n");
  const auto read = [this] { return Read({"--config", file_.c_str()}); };
  EXPECT_EQ(ReadAgain(first, read).config.defaults.concurrency, 2U);
  EXPECT_EQ(ReadAgain(CommandLine(), read).config.defaults.concurrency, 2U) << "there was none";
  EXPECT_EQ(ReadAgain(CommandLine(), [] { return CommandLine(); }).action,
            CommandLine::Action::kRun);
}

// A stop would wait for whoever writes into it.
TEST_F(CommandLineTest, AFileThatHasBecomeAPipeIsNotReadAgain) {
  WriteFile("defaults: { concurrency: 1 }\n");
  const CommandLine first = Read({"--config", file_.c_str()});
  ASSERT_EQ(::unlink(file_.c_str()), 0);
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  const CommandLine again = ReadAgain(first, [this] { return Read({"--config", file_.c_str()}); });
  EXPECT_EQ(again.action, CommandLine::Action::kRefuse);
  EXPECT_THAT(again.errors, ElementsAre(StartsWith(file_ + " is a pipe now, ")));
}

TEST_F(CommandLineTest, ErrorsOfAllSourcesAreTold) {
  WriteFile("log: { level: loud }\n");
  environment_["DELAYD_MEMORY_HORIZON"] = "soon";
  const CommandLine line = Read({"--config", file_.c_str(), "--api-listen", "nowhere"});
  EXPECT_EQ(line.action, CommandLine::Action::kRefuse);
  EXPECT_THAT(line.errors,
              ElementsAre(StartsWith(file_ + ":1:15: log.level: "),
                          StartsWith("--api-listen: expected ADDRESS:PORT"),
                          StartsWith("DELAYD_MEMORY_HORIZON: ")));
}

TEST_F(CommandLineTest, CheckConfigChecksAndDoesNotRun) {
  EXPECT_EQ(Read({"--check-config"}).action, CommandLine::Action::kCheckConfig);
  EXPECT_EQ(Read({"--check-config", "--log-level", "loud"}).action, CommandLine::Action::kRefuse);
}

TEST(MisspeltVariablesTest, TheOneCloseToASettingIsNamed) {
  const std::array entries = {"DELAYD_LOG_LEVL=debug",
                              "DELAYD_DATADIR=/x",
                              "DELAYD_DEFAULT_LEASE=1s",
                              "DELAYD_CONFIGS=/y",
                              static_cast<const char*>(nullptr)};
  EXPECT_THAT(MisspeltVariables(entries.data()),
              ElementsAre("'DELAYD_LOG_LEVL' in the environment is no setting and is ignored; did "
                          "you mean 'DELAYD_LOG_LEVEL'?",
                          EndsWith("did you mean 'DELAYD_DATA_DIR'?"),
                          EndsWith("did you mean 'DELAYD_DEFAULTS_LEASE'?"),
                          EndsWith("did you mean 'DELAYD_CONFIG'?")));
}

TEST(MisspeltVariablesTest, SettingsAndTheVariablesOfWorkersAndTestsAreNotNamed) {
  std::vector<std::string> entries = {"DELAYD_CONFIG=/x", "LOG_LEVEL=debug", "DELAYCTL_SERVER=x"};
  for (const ConfigKey& key : ConfigKeys()) {
    entries.push_back(EnvironmentName(key.name) + "=1");
  }
  for (const char* const other : {"JOB_ID",       "QUEUE",
                                  "KEY",          "ATTEMPT",
                                  "MAX_ATTEMPTS", "DUE",
                                  "LATENESS_MS",  "WORKER_FLAGS",
                                  "CRASH_AT",     "FAULT_CALL",
                                  "FAULT_STRIDE", "IO_FAULT",
                                  "SEED",         "SIMULATION_SEEDS",
                                  "STORM_CYCLES", "ROT_CASES",
                                  "TEST_CACHE",   "TEST_SCALE",
                                  "TEST_PACKAGE", "UBUNTU_KEYS",
                                  "PACKAGE_DATE", "PROFILE",
                                  "TEST_DATA",    "WRITE_FIXTURE",
                                  "SANITIZE",     "MUTANT_NO_SYNC",
                                  "BENCH_LIBUV"}) {
    entries.push_back("DELAYD_" + std::string(other) + "=1");
  }
  std::vector<const char*> environment;
  for (const std::string& entry : entries) {
    environment.push_back(entry.c_str());
  }
  environment.push_back(nullptr);
  EXPECT_THAT(MisspeltVariables(environment.data()), IsEmpty());
}

TEST_F(CommandLineTest, OfflineModesAreChosenOneAtATime) {
  const CommandLine verify = Read({"--verify", "--repair", "--data-dir", "/d"});
  EXPECT_EQ(verify.action, CommandLine::Action::kVerify);
  EXPECT_TRUE(verify.repair);
  EXPECT_EQ(verify.config.data_dir, "/d");
  const CommandLine recover = Read({"--recover", "--accept-loss"});
  EXPECT_EQ(recover.action, CommandLine::Action::kRecover);
  EXPECT_TRUE(recover.accept_loss);
  EXPECT_FALSE(Read({"--recover"}).accept_loss);
  EXPECT_THAT(Read({"--repair"}).errors, ElementsAre(HasSubstr("--verify")));
  EXPECT_THAT(Read({"--accept-loss"}).errors, ElementsAre(HasSubstr("--recover")));
  EXPECT_THAT(Read({"--verify", "--recover"}).errors, ElementsAre(HasSubstr("one of")));
  EXPECT_THAT(Read({"--verify", "--check-config"}).errors, ElementsAre(HasSubstr("one of")));
}

TEST_F(CommandLineTest, UnknownFlagIsRefusedWithTheNearestOne) {
  const CommandLine line = Read({"--data-dri", "/x"});
  EXPECT_EQ(line.action, CommandLine::Action::kRefuse);
  EXPECT_THAT(line.errors,
              ElementsAre("delayd: unknown argument '--data-dri'; did you mean '--data-dir'?"));
  EXPECT_THAT(Read({"serve"}).errors,
              ElementsAre("delayd: unknown argument 'serve'; 'delayd --help' lists the flags"));
}

TEST_F(CommandLineTest, HelpNamesEveryKeyAndEveryExitCode) {
  const CommandLine line = Read({"--help"});
  EXPECT_EQ(line.action, CommandLine::Action::kPrint);
  for (const ConfigKey& key : ConfigKeys()) {
    EXPECT_THAT(line.text, HasSubstr(std::string(key.name)));
  }
  EXPECT_THAT(line.text, HasSubstr("queues: { NAME: { ... } }"));
  EXPECT_THAT(line.text, HasSubstr("--check-config"));
  EXPECT_THAT(line.text, HasSubstr("  6  "));
  EXPECT_THAT(Read({"--version"}).text, StartsWith("delayd "));
}

// The file that is shipped shows every key with its default.
TEST_F(CommandLineTest, ShippedFileHoldsTheDefaultsAndEveryKey) {
  const std::string shipped = std::string(DELAYD_SOURCE_DIR) + "/config/delayd.yaml";
  const CommandLine line = Read({"--config", shipped.c_str()});
  EXPECT_THAT(line.errors, IsEmpty());
  EXPECT_EQ(line.config.memory.budget, Config().memory.budget);
  EXPECT_EQ(line.config.limits.idle, Config().limits.idle);
  EXPECT_EQ(line.config.limits.request_body, Config().limits.request_body);
  EXPECT_EQ(line.config.defaults.key_retention, Config().defaults.key_retention);
  const std::string text = test::ReadFile(shipped);
  for (const ConfigKey& key : ConfigKeys()) {
    const std::string_view leaf = key.name.substr(key.name.rfind('.') + 1);
    EXPECT_THAT(text,
                HasSubstr("\n" +
                          std::string(2 * static_cast<size_t>(
                                              std::count(key.name.begin(), key.name.end(), '.')),
                                      ' ') +
                          std::string(leaf) + ":"))
        << key.name;
  }
}

}  // namespace
}  // namespace delayd
