#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "base/time.h"
#include "base/utf8.h"
#include "cli/bar_chart.h"
#include "cli/human_time.h"
#include "cli/outage.h"
#include "cli/stat.h"
#include "cli/table.h"
#include "cli/verbs/verbs.h"
#include "protocol/json_writer.h"
#include "protocol/stats_json.h"

namespace delayd::cli {
namespace {

constexpr size_t kQueuesShown = 20;
constexpr Millis kMinute{60'000};
constexpr Millis kForecastStep{2000};

// The result of one look at the daemon.
struct Sample {
  Now now;
  std::vector<protocol::Stat> stats;
  std::vector<protocol::QueueCounts> queues;
  std::vector<protocol::ForecastStep> minute;
  protocol::Health health;
  std::optional<Millis> late;  // how long the oldest ready job has waited for a worker

  uint64_t Number(std::string_view name) const { return StatNumber(stats, name).value_or(0); }
};

StatusOr<Sample> Look(Api& api, const Context& context) {
  Sample sample{.now = context.clock.Sample()};
  DELAYD_ASSIGN_OR_RETURN(sample.stats, api.Stats());
  DELAYD_ASSIGN_OR_RETURN(sample.queues, api.Queues());
  DELAYD_ASSIGN_OR_RETURN(sample.health, api.Readiness());
  const WallTime now = sample.now.wall = context.DaemonNow();  // the answers above have told it
  DELAYD_ASSIGN_OR_RETURN(
      sample.minute,
      api.Forecast(
          {.queue = std::nullopt, .from = now, .to = now + kMinute, .step = kForecastStep}));
  if (sample.Number("ready") > 0) {
    // ListUpTo pages on: many leased jobs may come before the first ready one.
    DELAYD_ASSIGN_OR_RETURN(const protocol::JobPage oldest, api.ListUpTo({.state = "ready"}, 1));
    if (!oldest.jobs.empty()) {
      sample.late = std::max(now - oldest.jobs.front().due, Millis(0));
    }
  }
  std::ranges::stable_sort(sample.queues, std::greater<>(), [](const protocol::QueueCounts& queue) {
    return std::pair(queue.ready + queue.leased, queue.scheduled);
  });
  return sample;
}

std::string Rate(const Sample& before, const Sample& after, uint64_t from, uint64_t to) {
  const int64_t millis = std::max<int64_t>((after.now.boot - before.now.boot).count(), 1);
  const uint64_t count = to - std::min(from, to);  // a restarted daemon counts from 0
  char text[32];
  std::snprintf(
      text, sizeof text, "%.1f/s", static_cast<double>(count) * 1000 / static_cast<double>(millis));
  return text;
}

std::string PerSecond(const Sample& before, const Sample& after, std::string_view name) {
  return Rate(before, after, before.Number(name), after.Number(name));
}

class TopVerb final : public Verb {
 public:
  std::string_view name() const override { return "top"; }

  std::string_view summary() const override { return "Watch queues, rates and lateness live"; }

  std::string_view details() const override {
    return "Rates are of the last interval. Late is the job that has waited longest for a\n"
           "worker. A daemon that goes away meanwhile is waited for.\n"
           "\n"
           "Examples:\n"
           "  delayctl top --interval 5s\n"
           "  delayctl top --once";
  }

  void Declare(Options* options) override {
    options->Duration("--interval", &interval_, "look this often (1s)");
    options->Flag("--once", &once_, "print one view, after one interval, and end");
  }

  bool only_reads() const override { return true; }

  StatusOr<ExitCode> Run(Context* context) override {
    const Millis interval = interval_.value_or(Millis(1000));
    if (interval < Millis(100)) {
      return UsageError("--interval: shorter than 100ms only makes work; give 100ms or more");
    }
    const bool stream = context->globals.output == OutputFormat::kJsonl;
    if (!once_ && !stream && !context->console.traits().out_is_terminal) {
      return UsageError("top redraws a terminal, and stdout is none; give --once, or -o jsonl");
    }
    if (!once_ && context->globals.output == OutputFormat::kJson) {
      return UsageError("-o json is one document; give --once, or -o jsonl");
    }
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
    DELAYD_ASSIGN_OR_RETURN(Sample before, Look(*api, *context));
    Outage outage(&context->console);
    for (;;) {
      DELAYD_RETURN_IF_ERROR(context->Rest(interval));
      StatusOr<Sample> after = Look(*api, *context);
      if (!once_ && outage.MayWaitOut(after.status())) {
        continue;
      }
      outage.Over();
      if (!after.ok()) {
        return after.status();
      }
      Print(before, *after, context);
      DELAYD_RETURN_IF_ERROR(context->console.CheckOut(true));
      if (once_) {
        return kExitOk;
      }
      before = *std::move(after);
    }
  }

 private:
  void Print(const Sample& before, const Sample& after, Context* context) const {
    std::ostream& out = context->console.out();
    if (context->globals.output != OutputFormat::kTable) {
      PrintJson(before, after, context);
    } else if (once_) {
      PrintText(before, after, context);
    } else {
      context->console.View([&] { PrintText(before, after, context); });
    }
    out.flush();
  }

  void PrintText(const Sample& before, const Sample& after, Context* context) const {
    context->console.out() << "delayd  " << context->TimeText(after.now.wall)
                           << (once_ ? "" : "  Ctrl-C ends") << "\n\n";
    PrintHead(before, after, context);
    PrintMinute(after, context);
    PrintQueues(before, after, context);
  }

  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kRates = {
      {{"enqueued", "enqueued"},
       {"fired", "fired"},
       {"handed out", "handed_out"},
       {"acked", "acked"},
       {"nacked", "nacked"}}};

  static void PrintHead(const Sample& before, const Sample& after, Context* context) {
    std::ostream& out = context->console.out();
    for (const protocol::Health::Reason& reason : after.health.reasons) {
      out << "wrong   " << EscapeControls(reason.code + ": " + reason.detail) << '\n';
    }
    out << "jobs    " << after.Number("scheduled") << " scheduled, " << after.Number("ready")
        << " ready, " << after.Number("leased") << " leased, " << after.Number("dead") << " dead, "
        << after.Number("waiting") << (after.Number("waiting") == 1 ? " worker" : " workers")
        << " waiting\n";
    std::string rates;
    for (const auto& [label, counter] : kRates) {
      rates += (rates.empty() ? "" : ", ") + std::string(label) + " " +
               PerSecond(before, after, counter);
    }
    out << "rates   " << rates << '\n'
        << "late    " << (after.late.has_value() ? RoughDuration(*after.late) : "nothing waits")
        << '\n';
  }

  static void PrintMinute(const Sample& sample, Context* context) {
    std::vector<uint64_t> counts;
    bool approximate = false;
    for (const protocol::ForecastStep& step : sample.minute) {
      counts.push_back(step.count);
      approximate = approximate || step.approximate;
    }
    const uint64_t total = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
    context->console.out() << "minute  " << DrawSparkline(counts, context->console.traits().utf8)
                           << "  " << (approximate ? "~" : "") << total
                           << " due in the next 60s\n\n";
  }

  void PrintQueues(const Sample& before, const Sample& sample, Context* context) const {
    Table table({"QUEUE", "SCHEDULED", "READY", "LEASED", "DEAD", "ENQUEUED", "ACKED", "PAUSED"});
    for (size_t i = 0; i < std::min(sample.queues.size(), kQueuesShown); ++i) {
      const protocol::QueueCounts& queue = sample.queues[i];
      const auto found = std::ranges::find(before.queues, queue.name, &protocol::QueueCounts::name);
      const protocol::QueueCounts earlier =
          found == before.queues.end() ? protocol::QueueCounts{} : *found;
      table.Add({queue.name,
                 std::to_string(queue.scheduled),
                 std::to_string(queue.ready),
                 std::to_string(queue.leased),
                 std::to_string(queue.dead),
                 Rate(before, sample, earlier.enqueued, queue.enqueued),
                 Rate(before, sample, earlier.acked, queue.acked),
                 queue.paused ? "yes" : "no"});
    }
    // Otherwise one queue with a long name would make each line take several rows of the screen.
    if (!once_) {
      table.FitColumns({0}, context->console.traits().width);
    }
    table.Flush(&context->console);
    if (sample.queues.size() > kQueuesShown) {
      context->console.out() << "and " << sample.queues.size() - kQueuesShown
                             << " more; see delayctl queues\n";
    }
  }

  static void PrintJson(const Sample& before, const Sample& after, Context* context) {
    protocol::JsonObjectWriter writer;
    writer.String("time", FormatUtc(after.now.wall));
    writer.Number("interval_ms", static_cast<uint64_t>((after.now.boot - before.now.boot).count()));
    for (const auto& [label, counter] : kRates) {
      writer.Number(
          std::string(counter) + "_in_interval",
          after.Number(counter) - std::min(before.Number(counter), after.Number(counter)));
    }
    if (after.late.has_value()) {
      writer.Number("late_ms", static_cast<uint64_t>(after.late->count()));
    }
    writer.Raw("health", protocol::HealthToJson(after.health));
    writer.Raw("stats", protocol::StatsToJson(after.stats));
    writer.Raw("queues", protocol::QueuesToJson(after.queues));
    context->console.out() << writer.Take() << '\n';
  }

  std::optional<Millis> interval_;
  bool once_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeTop() {
  return std::make_unique<TopVerb>();
}

}  // namespace delayd::cli
