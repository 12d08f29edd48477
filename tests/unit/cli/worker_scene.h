// tests/unit/cli/worker_scene.h — what a worker in a test runs in: a daemon that is a function, and
// a console that is strings.
#pragma once

#include <memory>
#include <sstream>
#include <utility>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "cli/context.h"
#include "tests/unit/cli/fake_daemon.h"

namespace delayd::cli {

class WorkerScene : public ::testing::Test {
 protected:
  // `clock` may be a member of the test: nothing asks it yet.
  WorkerScene(const Clock& clock, FakeDaemon::Function answer)
      : daemon_(std::move(answer)),
        context_{.globals = {},
                 .console = console_,
                 .clock = clock,
                 .in = in_,
                 .in_is_terminal = false,
                 .connect = [this]() -> StatusOr<std::unique_ptr<protocol::Client>> {
                   return daemon_.Connect();
                 }} {}

  std::ostringstream out_;
  std::ostringstream err_;
  std::istringstream in_;
  Console console_{out_, err_, {}};
  FakeDaemon daemon_;
  Context context_;
};

}  // namespace delayd::cli
