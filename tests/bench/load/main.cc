// delayd_load: puts a server under load and prints what it did, as one line of JSON. It speaks to
// delayd and to its peers, so that all do the same work in the same run; scripts/bench compares
// them.
//
//   delayd_load put --protocol beanstalk --target unix:PATH --connections 16 --window 100
//
// The modes are described in tests/bench/load/modes.h; --help lists the options.
#include <cstdlib>

#include "tests/bench/load/modes.h"
#include "tests/bench/load/options.h"

#include <CLI/CLI.hpp>
#include <sys/prctl.h>
#include <sys/resource.h>

namespace delayd::load {
namespace {

int Main(int argc, char** argv) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  ::prctl(PR_SET_TIMERSLACK, 1);  // an open loop wakes up when it should
  Options options;
  CLI::App app("Puts a server of delayed jobs under load");
  app.require_subcommand(1);
  const auto mode = [&](const char* name, void (*run)(const Options&)) {
    CLI::App* const sub = app.add_subcommand(name);
    sub->add_option("--target", options.target)->required();
    sub->add_option("--protocol", options.protocol);
    sub->add_option("--connections", options.connections)->check(CLI::PositiveNumber);
    sub->add_option("--window", options.window)->check(CLI::PositiveNumber);
    sub->add_option("--seconds", options.seconds);
    sub->add_option("--jobs", options.jobs);
    sub->add_option("--pending", options.pending);
    sub->add_option("--size", options.size);
    sub->add_option("--queues", options.queues);
    sub->add_option("--rate", options.rate)->check(CLI::PositiveNumber);
    sub->add_option("--pid", options.pid);
    sub->final_callback([&options, run] { run(options); });
  };
  mode("put", MeasurePut);
  mode("open", MeasureOpen);
  mode("drain", MeasureDrain);
  mode("cancel", MeasureCancel);
  mode("lateness", MeasureLateness);
  mode("burst", MeasureBurst);
  mode("idle", MeasureIdle);
  mode("fill", MeasureFill);
  mode("first", MeasureFirst);
  mode("floor", MeasureFloor);
  CLI11_PARSE(app, argc, argv);
  return 0;
}

}  // namespace
}  // namespace delayd::load

int main(int argc, char** argv) {
  return delayd::load::Main(argc, argv);
}
