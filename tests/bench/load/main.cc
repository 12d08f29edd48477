// delayd_load: puts a beanstalk server under load and prints what it did, as one line of JSON. Any
// server of the protocol will do, so that peers are measured by the same tool in the same run.
//
//   delayd_load put      --target unix:PATH --connections 16 --window 100 --seconds 2
//   delayd_load drain    ... --jobs 50000       reserve + delete until they are gone
//   delayd_load lateness ... --jobs 2000        put with a delay of 1 s; how late a reserve gets
//   each delayd_load idle     ... --connections 10000 --pid PID    what they cost the server
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/load/load_connection.h"

#include <CLI/CLI.hpp>
#include <sys/epoll.h>
#include <sys/resource.h>

namespace delayd::load {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string target;
  size_t connections = 1;
  size_t window = 1;
  double seconds = 2;
  size_t jobs = 50'000;
  size_t size = 256;
  int64_t pid = 0;
};

int64_t NowMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch())
      .count();
}

// The sorted values' p-th part of a thousand.
int64_t At(const std::vector<int64_t>& sorted, size_t per_mille) {
  return sorted.empty() ? 0 : sorted[std::min(sorted.size() - 1, sorted.size() * per_mille / 1000)];
}

void Print(const char* name, size_t count, double seconds, std::vector<int64_t> micros) {
  std::sort(micros.begin(), micros.end());
  std::printf(
      "{\"name\":\"%s\",\"count\":%zu,\"seconds\":%.3f,\"per_second\":%.0f,\"p50_us\":%lld,"
      "\"p99_us\":%lld,\"p999_us\":%lld,\"max_us\":%lld}\n",
      name,
      count,
      seconds,
      static_cast<double>(count) / seconds,
      static_cast<long long>(At(micros, 500)),    // NOLINT(google-runtime-int)
      static_cast<long long>(At(micros, 990)),    // NOLINT(google-runtime-int)
      static_cast<long long>(At(micros, 999)),    // NOLINT(google-runtime-int)
      static_cast<long long>(At(micros, 1000)));  // NOLINT(google-runtime-int)
}

// All connections on one epoll; `serve` is called with each that has something to read.
class Crowd {
 public:
  explicit Crowd(const Options& options) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    for (size_t i = 0; i < options.connections; ++i) {
      connections_.push_back(std::make_unique<LoadConnection>(options.target));
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = i;
      ::epoll_ctl(epoll_, EPOLL_CTL_ADD, connections_.back()->fd(), &event);
    }
  }

  size_t size() const { return connections_.size(); }

  LoadConnection& operator[](size_t i) { return *connections_[i]; }

  template <typename Serve>
  void Wait(int timeout_ms, const Serve& serve) {
    constexpr int kEvents = 256;
    epoll_event events[kEvents];
    const int count = ::epoll_wait(epoll_, events, kEvents, timeout_ms);
    for (int i = 0; i < count; ++i) {
      const size_t at = events[i].data.u64;
      connections_[at]->Fill();
      serve(at);
      while (!connections_[at]->Flush()) {
        connections_[at]->Fill();  // both sides full: take what is there
      }
    }
  }

 private:
  int epoll_;
  std::vector<std::unique_ptr<LoadConnection>> connections_;
};

void AppendPut(size_t delay_seconds, std::string_view body, std::string* out) {
  *out +=
      "put 1024 " + std::to_string(delay_seconds) + " 60 " + std::to_string(body.size()) + "\r\n";
  *out += body;
  *out += "\r\n";
}

// Every connection keeps `window` puts in flight.
void Put(const Options& options) {
  constexpr int64_t kWarmUpMicros = 300'000;
  Crowd crowd(options);
  const std::string body(options.size, 'x');
  std::vector<std::vector<int64_t>> sent(crowd.size());
  std::vector<size_t> oldest(crowd.size());
  std::vector<int64_t> micros;
  size_t delay = 0;
  const auto put = [&](size_t at, int64_t now) {
    AppendPut(1800 + ++delay % 600, body, &crowd[at].out());
    sent[at].push_back(now);
  };
  const int64_t begin = NowMicros();
  for (size_t at = 0; at < crowd.size(); ++at) {
    for (size_t i = 0; i < options.window; ++i) {
      put(at, begin);
    }
    crowd[at].Flush();
  }
  const int64_t from = begin + kWarmUpMicros;
  const int64_t to = from + static_cast<int64_t>(options.seconds * 1e6);
  int64_t now = begin;
  while (now < to) {
    crowd.Wait(100, [&](size_t at) {
      now = NowMicros();
      Answer answer;
      while (crowd[at].Next(&answer)) {
        if (!answer.line.starts_with("INSERTED ")) {
          Fail("put was answered with " + std::string(answer.line));
        }
        if (now >= from && now < to) {
          micros.push_back(now - sent[at][oldest[at]]);
        }
        if (++oldest[at] > 4096) {
          sent[at].erase(sent[at].begin(), sent[at].begin() + static_cast<int64_t>(oldest[at]));
          oldest[at] = 0;
        }
        put(at, now);
      }
    });
    now = NowMicros();
  }
  const size_t count = micros.size();
  Print("put", count, options.seconds, std::move(micros));
}

void Fill(const Options& options, size_t delay_seconds) {
  LoadConnection connection(options.target);
  const std::string body(options.size, 'x');
  constexpr size_t kPart = 1000;
  for (size_t done = 0; done < options.jobs;) {
    const size_t part = std::min(kPart, options.jobs - done);
    for (size_t i = 0; i < part; ++i) {
      AppendPut(delay_seconds, body, &connection.out());
    }
    for (size_t i = 0; i < part; ++i) {
      connection.Call();
    }
    done += part;
  }
}

// Every connection keeps `window` reserves in flight, and deletes what it gets; the delete and the
// next reserve go out together.
void Drain(const Options& options) {
  Fill(options, 0);
  Crowd crowd(options);
  size_t deleted = 0;
  size_t idle = 0;
  const int64_t begin = NowMicros();
  for (size_t at = 0; at < crowd.size(); ++at) {
    for (size_t i = 0; i < options.window; ++i) {
      crowd[at].out() += "reserve-with-timeout 0\r\n";
    }
    crowd[at].Flush();
  }
  while (idle < crowd.size() * options.window || deleted < options.jobs) {
    crowd.Wait(1000, [&](size_t at) {
      Answer answer;
      while (crowd[at].Next(&answer)) {
        if (answer.line.starts_with("RESERVED ")) {
          crowd[at].out() +=
              "delete " + std::to_string(answer.Id()) + "\r\nreserve-with-timeout 0\r\n";
        } else if (answer.line == "DELETED") {
          ++deleted;
        } else if (answer.line == "TIMED_OUT") {
          ++idle;
        } else {
          Fail("reserve or delete was answered with " + std::string(answer.line));
        }
      }
    });
  }
  Print("reserve+delete", deleted, static_cast<double>(NowMicros() - begin) / 1e6, {});
}

// A job's body says when its put was sent; it is due a second later.
void Lateness(const Options& options) {
  constexpr int64_t kDelayMicros = 1'000'000;
  LoadConnection producer(options.target);
  LoadConnection worker(options.target);
  worker.out() = "reserve\r\n";
  worker.Flush();
  std::vector<int64_t> micros;
  const int64_t begin = NowMicros();
  const auto gap = static_cast<int64_t>(options.seconds * 1e6 / static_cast<double>(options.jobs));
  size_t put = 0;
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  for (LoadConnection* connection : {&producer, &worker}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = connection;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, connection->fd(), &event);
  }
  while (micros.size() < options.jobs) {
    for (; put < options.jobs && NowMicros() >= begin + static_cast<int64_t>(put) * gap; ++put) {
      AppendPut(1, std::to_string(NowMicros()), &producer.out());
      producer.Flush();
    }
    epoll_event event{};
    if (::epoll_wait(epoll, &event, 1, 1) != 1) {
      continue;
    }
    auto* const connection = static_cast<LoadConnection*>(event.data.ptr);
    connection->Fill();
    Answer answer;
    while (connection->Next(&answer)) {
      if (answer.line.starts_with("RESERVED ")) {
        micros.push_back(NowMicros() - std::stoll(std::string(answer.body)) - kDelayMicros);
        worker.out() += "delete " + std::to_string(answer.Id()) + "\r\nreserve\r\n";
      }
    }
    worker.Flush();
  }
  const size_t count = micros.size();
  Print("lateness", count, static_cast<double>(NowMicros() - begin) / 1e6, std::move(micros));
}

// Resident bytes of a process.
int64_t ResidentKib(int64_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("VmRSS:")) {
      return std::stoll(line.substr(6));
    }
  }
  return 0;
}

// Each connection has done something once, and then does nothing.
void Idle(const Options& options) {
  const int64_t before = ResidentKib(options.pid);
  std::vector<std::unique_ptr<LoadConnection>> connections;
  for (size_t i = 0; i < options.connections; ++i) {
    connections.push_back(std::make_unique<LoadConnection>(options.target));
    connections.back()->out() = "watch tube-" + std::to_string(i % 100) + "\r\n";
    const std::string answer = connections.back()->Call();
    if (answer != "WATCHING 2") {
      Fail("watch was answered with " + answer);
    }
    connections.back()->out() = "reserve\r\n";
    connections.back()->Flush();
  }
  LoadConnection last(options.target);
  last.out() = "stats\r\n";
  last.Call();
  const int64_t after = ResidentKib(options.pid);
  std::printf("{\"name\":\"idle\",\"connections\":%zu,\"kib\":%lld,\"kib_each\":%.2f}\n",
              options.connections,
              static_cast<long long>(after - before),  // NOLINT(google-runtime-int)
              static_cast<double>(after - before) / static_cast<double>(options.connections));
}

int Main(int argc, char** argv) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  Options options;
  CLI::App app("Puts a beanstalk server under load");
  app.require_subcommand(1);
  const auto mode = [&](const char* name, void (*run)(const Options&)) {
    CLI::App* const sub = app.add_subcommand(name);
    sub->add_option("--target", options.target)->required();
    sub->add_option("--connections", options.connections);
    sub->add_option("--window", options.window);
    sub->add_option("--seconds", options.seconds);
    sub->add_option("--jobs", options.jobs);
    sub->add_option("--size", options.size);
    sub->add_option("--pid", options.pid);
    sub->final_callback([&options, run] { run(options); });
  };
  mode("put", Put);
  mode("drain", Drain);
  mode("lateness", Lateness);
  mode("idle", Idle);
  CLI11_PARSE(app, argc, argv);
  return 0;
}

}  // namespace
}  // namespace delayd::load

int main(int argc, char** argv) {
  return delayd::load::Main(argc, argv);
}
