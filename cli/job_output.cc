#include "cli/job_output.h"

#include "base/utf8.h"
#include "cli/human_time.h"
#include "cli/table.h"
#include "protocol/duration.h"
#include "protocol/job_json.h"
#include "protocol/json_writer.h"

namespace delayd::cli {
namespace {

using protocol::FormatDuration;

std::string LeftOf(const JobView& job, WallTime now) {
  const bool waits = job.state == JobState::kScheduled || job.state == JobState::kReady;
  return waits ? RoughDuration(job.due - now) : "";
}

std::string AttemptOf(const JobView& job) {
  const std::string attempt = std::to_string(job.attempt);
  return job.max_attempts == 0 ? attempt : attempt + "/" + std::to_string(job.max_attempts);
}

class Card {
 public:
  explicit Card(Console* console) : console_(console) {}

  void Line(std::string name, const std::string& value) {
    if (value.empty()) {
      return;
    }
    name.resize(15, ' ');
    console_->out() << console_->Bold(name) << EscapeControls(value, false) << '\n';
  }

 private:
  Console* console_;
};

std::string PayloadSize(const JobView& job) {
  return std::to_string(job.payload_bytes) + (job.payload_bytes == 1 ? " byte" : " bytes");
}

}  // namespace

Status PayloadIsThere(const JobView& job) {
  const std::string name = "the payload of job " + std::to_string(ToInt(job.id));
  if (job.is_summary()) {
    return NotFound(name + " is not kept: the queue's history_retention is 0s");
  }
  return job.payload_bytes > 0 && job.payload.value_or("").empty()
             ? NotFound(name + ", " + PayloadSize(job) + ", is not kept")
             : OkStatus();
}

void PrintCard(const JobView& job, Context* context) {
  const WallTime now = context->DaemonNow();
  Card card(&context->console);
  card.Line("id", std::to_string(ToInt(job.id)));
  card.Line("queue", job.queue);
  card.Line("key", job.key);
  card.Line("state", std::string(JobStateName(job.state)));
  const std::string_view clock = job.is_summary()                     ? ""
                                 : job.due_kind == DueKind::kRelative ? ", real time"
                                                                      : ", wall clock";
  card.Line("due",
            context->TimeText(job.due) + " (" + FromNow(job.due, now) + std::string(clock) + ")");
  card.Line("created", context->TimeText(job.created));
  if (!job.is_summary()) {
    card.Line("priority", std::to_string(job.priority));
    card.Line("lease", FormatDuration(job.lease));
  }
  card.Line("attempt", AttemptOf(job));
  if (job.delay.has_value() && *job.delay > Millis(0)) {
    card.Line("touch delay", FormatDuration(*job.delay));
  }
  if (job.expires_after.has_value()) {
    card.Line("expires after", FormatDuration(*job.expires_after));
  }
  if (job.lease_token.has_value()) {
    card.Line("lease token", FormatLeaseToken(*job.lease_token));
  }
  if (job.lease_expires.has_value()) {
    card.Line(
        "lease ends",
        context->TimeText(*job.lease_expires) + " (" + FromNow(*job.lease_expires, now) + ")");
  }
  if (job.lateness.has_value()) {
    card.Line("late", FormatDuration(*job.lateness));
  }
  card.Line("last error", job.last_error);
  if (job.finished.has_value()) {
    card.Line("finished", context->TimeText(*job.finished));
  }
  card.Line("outcome", job.outcome);
  card.Line("worker", job.client);
  for (const JobEvent& event : job.history) {
    std::string line = context->TimeText(event.at) + " " + std::string(JobEventName(event.kind));
    line += event.who.empty() ? "" : " by " + event.who;
    line += event.what.empty() ? "" : ": " + event.what;
    card.Line("history", line);
  }
  if (job.is_summary()) {
    card.Line("payload", "not kept: the queue's history_retention is 0s");
    return;
  }
  card.Line("payload", PayloadSize(job) + (PayloadIsThere(job).ok() ? "" : ", not kept"));
  if (job.payload.has_value() && !job.payload->empty()) {
    context->console.out() << EscapeControls(*job.payload, true) << '\n';
  }
}

namespace {

constexpr size_t kQueueColumn = 1;
constexpr size_t kKeyColumn = 2;

std::vector<std::string> Header(bool wide) {
  std::vector<std::string> header = {
      "ID", "QUEUE", "KEY", "STATE", "DUE", "LEFT", "CLOCK", "ATTEMPT"};
  if (wide) {
    header.insert(header.end(), {"PRIORITY", "LEASE", "CREATED", "BYTES", "LAST ERROR"});
  }
  return header;
}

}  // namespace

struct JobListPrinter::Columns {
  explicit Columns(bool wide) : table(Header(wide)) {}

  Table table;
};

void JobListPrinter::AddRow(const JobView& job, WallTime now) {
  std::vector<std::string> row = {std::to_string(ToInt(job.id)),
                                  job.queue,
                                  job.key,
                                  std::string(JobStateName(job.state)),
                                  context_->TimeText(job.due),
                                  LeftOf(job, now),
                                  job.due_kind == DueKind::kRelative ? "relative" : "wall",
                                  AttemptOf(job)};
  if (context_->globals.wide) {
    row.insert(row.end(),
               {std::to_string(job.priority),
                FormatDuration(job.lease),
                context_->TimeText(job.created),
                std::to_string(job.payload_bytes),
                job.last_error});
  }
  columns_->table.Add(std::move(row));
}

JobListPrinter::JobListPrinter(Context* context)
    : context_(context), columns_(std::make_unique<Columns>(context->globals.wide)) {
  if (!context_->globals.quiet && context_->globals.output == OutputFormat::kJson) {
    context_->console.out() << "{\"jobs\":[";
  }
}

JobListPrinter::~JobListPrinter() = default;

void JobListPrinter::Print(const std::vector<JobView>& jobs) {
  std::ostream& out = context_->console.out();
  const WallTime now = context_->DaemonNow();
  for (const JobView& job : jobs) {
    if (context_->globals.quiet) {
      out << ToInt(job.id) << '\n';
      continue;
    }
    switch (context_->globals.output) {
      case OutputFormat::kTable:
        AddRow(job, now);
        break;
      case OutputFormat::kJson:
        out << (first_ ? "" : ",\n") << protocol::JobToJson(job);
        break;
      case OutputFormat::kJsonl:
        out << protocol::JobToJson(job) << '\n';
        break;
    }
    first_ = false;
  }
  if (!context_->globals.quiet && context_->globals.output == OutputFormat::kTable) {
    if (context_->CutsNames()) {
      columns_->table.FitColumns(
          {kQueueColumn, kKeyColumn}, context_->console.traits().width, kNameWidthMin);
    }
    columns_->table.Flush(&context_->console);
  }
}

void JobListPrinter::Finish(const std::string& next_cursor, const std::string& next_queue) {
  if (context_->globals.quiet || context_->globals.output != OutputFormat::kJson) {
    return;
  }
  context_->console.out() << ']';
  if (!next_queue.empty()) {
    context_->console.out() << ",\"next_queue\":" << protocol::JsonString(next_queue);
  }
  if (!next_cursor.empty()) {
    context_->console.out() << ",\"next_cursor\":" << protocol::JsonString(next_cursor);
  }
  context_->console.out() << "}\n";
}

}  // namespace delayd::cli
