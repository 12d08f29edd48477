#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "cli/bar_chart.h"
#include "cli/human_time.h"
#include "cli/table.h"
#include "cli/verbs/verbs.h"
#include "protocol/bulk_json.h"

namespace delayd::cli {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Millis kLengthDefault = hours(1);
constexpr int64_t kStepsWanted = 24;

// Round steps that people read easily.
constexpr auto kSteps = std::to_array<Millis>(
    {Millis(1),  Millis(10), Millis(100), seconds(1),  seconds(5),  seconds(10), seconds(30),
     minutes(1), minutes(5), minutes(10), minutes(15), minutes(30), hours(1),    hours(2),
     hours(6),   hours(12),  hours(24),   hours(48),   hours(168),  hours(720),  hours(8760)});

Millis ChooseStep(Millis length) {
  for (const Millis step : kSteps) {
    if (length / step <= kStepsWanted) {
      return step;
    }
  }
  return length / kStepsWanted;
}

// "13:05:00", or "11-21 13:05" when a step is long or the forecast leaves the day.
std::string ShortTime(WallTime time, WallTime from, WallTime to, const Context& context) {
  const std::string text = context.TimeText(time);  // 2026-11-21T13:05:00.000+01:00
  const bool one_day = context.TimeText(from).substr(0, 10) == context.TimeText(to).substr(0, 10);
  return one_day ? text.substr(11, 8) : text.substr(5, 5) + " " + text.substr(11, 5);
}

std::string CountText(const protocol::ForecastStep& step) {
  return (step.approximate ? "~" : "") + std::to_string(step.count);
}

class ForecastVerb final : public Verb {
 public:
  std::string_view name() const override { return "forecast"; }

  std::string_view summary() const override { return "Show how many jobs fall due, and when"; }

  std::string_view details() const override {
    return "A count with ~ in front is an estimate: there are too many jobs in that\n"
           "step to count them without keeping others waiting; a shorter range counts them.\n"
           "\n"
           "Examples:\n"
           "  delayctl forecast --chart\n"
           "  delayctl forecast --queue orders --to 24h --step 1h -o json";
  }

  void Declare(Options* options) override {
    options->Text("--queue", "QUEUE", &queue_, "only this queue");
    options->TimeOrDuration(
        "--from", &from_, "begin at this time, or this duration from now (now)");
    options->TimeOrDuration(
        "--to", &to_, "end at this time, or this duration from now (an hour after --from)");
    options->Duration("--step", &step_, "the length of a step (chosen for about 24 steps)");
    options->Flag("--chart", &chart_, "a bar for each step");
  }

  bool only_reads() const override { return true; }

  StatusOr<ExitCode> Run(Context* context) override {
    if (queue_.has_value()) {
      DELAYD_RETURN_IF_ERROR(ValidateQueueName(*queue_));
    }
    if (chart_ && context->globals.output != OutputFormat::kTable) {
      return UsageError("--chart is for people; leave it out with -o json or jsonl");
    }
    DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi());
    DELAYD_ASSIGN_OR_RETURN(const WallTime now, api->Time());
    DELAYD_ASSIGN_OR_RETURN(const ForecastQuery query, Resolve(now));
    DELAYD_ASSIGN_OR_RETURN(const std::vector<protocol::ForecastStep> steps, api->Forecast(query));
    Print(steps, now, context);
    return kExitOk;
  }

 private:
  StatusOr<ForecastQuery> Resolve(WallTime now) const {
    ForecastQuery query{.queue = queue_, .from = now};
    if (from_.has_value()) {
      DELAYD_ASSIGN_OR_RETURN(query.from, ParseTimeOrDuration(*from_, now));
    }
    query.to = query.from + kLengthDefault;
    if (to_.has_value()) {
      DELAYD_ASSIGN_OR_RETURN(query.to, ParseTimeOrDuration(*to_, now));
    }
    if (query.to <= query.from) {
      return UsageError("--to is not after --from; give a later time, such as --to 24h");
    }
    query.step = step_.value_or(ChooseStep(query.to - query.from));
    if (query.step <= Millis(0)) {
      return UsageError("--step: a step of nothing never ends; give at least 1ms");
    }
    return query;
  }

  // `now` is the time of the request, where the first step begins; it has passed since.
  void Print(const std::vector<protocol::ForecastStep>& steps,
             WallTime now,
             Context* context) const {
    std::ostream& out = context->console.out();
    if (context->globals.output == OutputFormat::kJson) {
      out << protocol::ForecastToJson(steps) << '\n';
    } else if (context->globals.output == OutputFormat::kJsonl) {
      for (const protocol::ForecastStep& step : steps) {
        out << protocol::ForecastStepToJson(step) << '\n';
      }
    } else if (context->globals.quiet) {
      for (const protocol::ForecastStep& step : steps) {
        out << step.count << '\n';
      }
    } else if (chart_) {
      PrintChart(steps, context);
    } else {
      PrintTable(steps, now, context);
    }
  }

  static void PrintTable(const std::vector<protocol::ForecastStep>& steps,
                         WallTime now,
                         Context* context) {
    Table table({"FROM", "TO", "BEGINS", "DUE"});
    for (const protocol::ForecastStep& step : steps) {
      table.Add({context->TimeText(step.from),
                 context->TimeText(step.to),
                 FromNow(step.from, now),
                 CountText(step)});
    }
    table.Flush(&context->console);
  }

  static void PrintChart(const std::vector<protocol::ForecastStep>& steps, Context* context) {
    std::vector<Bar> bars;
    bars.reserve(steps.size());
    for (const protocol::ForecastStep& step : steps) {
      bars.push_back({.label = ShortTime(step.from, steps.front().from, steps.back().to, *context),
                      .value = step.count,
                      .text = CountText(step)});
    }
    context->console.out() << DrawBars(
        bars, context->console.traits().width, context->console.traits().utf8);
  }

  std::optional<std::string> queue_;
  std::optional<std::string> from_;
  std::optional<std::string> to_;
  std::optional<Millis> step_;
  bool chart_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeForecast() {
  return std::make_unique<ForecastVerb>();
}

}  // namespace delayd::cli
