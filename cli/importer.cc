#include "cli/importer.h"

#include <algorithm>

#include "base/limits.h"
#include "protocol/client.h"

namespace delayd::cli {
namespace {

std::string LineName(uint64_t number) {
  return "line " + std::to_string(number);
}

// The daemon objects to what was sent; the failure is not its own.
bool IsAboutALine(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument ||
         status.code() == StatusCode::kAlreadyExists ||
         status.code() == StatusCode::kFailedPrecondition || IsTooLarge(status);
}

// The daemon's advice names a field of its API; here that is a member of the line.
std::string OfALine(std::string message) {
  constexpr std::string_view kField = "enqueue with on_conflict";
  if (const size_t at = message.rfind(kField); at != std::string::npos) {
    message.replace(at, kField.size(), R"(write "on_conflict":"keep" or "replace" into the line)");
  }
  return message;
}

}  // namespace

Status Importer::AddLine(uint64_t number, std::string_view text) {
  if (text.find_first_not_of(" \t\r") == std::string_view::npos) {
    if (pending_.empty() && under_way_.empty()) {
      counts_.settled_line = number;
    }
    return OkStatus();
  }
  StatusOr<JobSpec> spec = protocol::ParseExportedJob(text, limits::kPayloadBytesHardMax);
  if (!spec.ok()) {
    return AddBadLine(number, spec.status());
  }
  Line line{.number = number,
            .json = protocol::JobSpecToJson(*spec),
            .key = spec->key,
            .repeatable = !spec->key.empty() && spec->on_conflict == OnConflict::kFail};
  if (pending_bytes_ + line.json.size() > options_.batch_bytes) {
    DELAYD_RETURN_IF_ERROR(StartBatch());
  }
  pending_bytes_ += line.json.size() + 1;
  pending_.push_back(std::move(line));
  return pending_.size() >= options_.batch_jobs ? StartBatch() : OkStatus();
}

Status Importer::AddBadLine(uint64_t number, const Status& why) {
  // Everything before it is enqueued first, as the message will say.
  DELAYD_RETURN_IF_ERROR(Flush());
  return LeaveOut(number, why);
}

Status Importer::LeaveOut(uint64_t number, const Status& why) {
  const Status status = why.WithContext(LineName(number));
  if (!options_.keep_going) {
    counts_.settled_line = number - 1;
    return status;
  }
  ++counts_.bad_lines;
  counts_.settled_line = number;
  hooks_.bad_line(status);
  return OkStatus();
}

Status Importer::Flush() {
  DELAYD_RETURN_IF_ERROR(StartBatch());
  return SettleAll();
}

Status Importer::StartBatch() {
  Batch lines = std::move(pending_);
  pending_.clear();
  pending_bytes_ = 0;
  if (lines.empty()) {
    return OkStatus();
  }
  const bool overlaps = std::ranges::all_of(lines, &Line::repeatable);
  if (!overlaps) {
    DELAYD_RETURN_IF_ERROR(SettleAll());
  } else if (sender_.full()) {
    DELAYD_RETURN_IF_ERROR(Settle());
  }
  // For lines that a second send would enqueue twice, always wait for the answer.
  sender_.Start(BodyOf(lines), lines.size(), overlaps ? options_.give_up_fd : -1);
  under_way_.push_back(std::move(lines));
  return overlaps && !sender_.full() ? OkStatus() : Settle();
}

Status Importer::Settle() {
  const Batch lines = std::move(under_way_.front());
  under_way_.pop_front();
  BatchSender::Answer answer = sender_.Take();
  if (sent_before_wait_ > 0) {
    --sent_before_wait_;
    // What was waited for has met this batch too, which is no news.
    if (MayGoWellLater(answer.status()) && hooks_.sleep(Millis(0)).ok()) {
      answer = sender_.SendNow(BodyOf(lines), lines.size());
    }
  }
  return Conclude(lines, std::move(answer));
}

Status Importer::SettleAll() {
  while (!under_way_.empty()) {
    DELAYD_RETURN_IF_ERROR(Settle());
  }
  return OkStatus();
}

std::string Importer::BodyOf(const std::vector<Line>& lines) {
  std::string body;
  for (const Line& line : lines) {
    body += line.json;
    body += '\n';
  }
  return body;
}

Status Importer::Send(const std::vector<Line>& lines) {
  return Conclude(lines, sender_.SendNow(BodyOf(lines), lines.size()));
}

Status Importer::Conclude(const std::vector<Line>& lines, BatchSender::Answer answer) {
  patience_.Reset();
  for (;;) {
    if (answer.ok()) {
      return Record(lines, *answer);
    }
    // A batch may never find room as a whole, so its lines take what room there is one by one.
    const bool waits_for_room = NeedsRoom(answer.status()) && lines.size() == 1;
    const bool is_lost = answer.status().code() == StatusCode::kUnknown;
    if (!waits_for_room && !is_lost && !MayGoWellLater(answer.status())) {
      return Refused(lines, answer.status());
    }
    DELAYD_RETURN_IF_ERROR(Retry(lines, answer.status()));
    answer = sender_.SendNow(BodyOf(lines), lines.size());
  }
}

Status Importer::Retry(const std::vector<Line>& lines, const Status& why) {
  const bool repeatable = std::ranges::all_of(lines, &Line::repeatable);
  const std::string range = lines.size() == 1 ? LineName(lines.front().number)
                                              : "lines " + std::to_string(lines.front().number) +
                                                    " to " + std::to_string(lines.back().number);
  if (why.code() == StatusCode::kUnknown && !repeatable) {
    return Unknown(
        why.message() + "; " + range +
            " may or may not be enqueued; nothing was sent again, since without a key, or with "
            "on_conflict keep or replace, that could double a job; look with delayctl list, then "
            "resume with --skip " +
            std::to_string(lines.back().number) + " if all is there, or --skip " +
            std::to_string(counts_.settled_line),
        why.reason());
  }
  const bool lost = why.code() == StatusCode::kUnknown;
  if (!lost || MayGoWellLater(why)) {
    DELAYD_ASSIGN_OR_RETURN(
        const bool again,
        patience_.Wait(
            why,
            protocol::WithoutWarning(why) +
                (lost ? "; every line has a key, so it is safe to send them again" : "")));
    if (again) {
      sent_before_wait_ = under_way_.size();
      return OkStatus();
    }
  }
  const std::string resume =
      lost ? "; every line has a key, resume with --skip " + std::to_string(counts_.settled_line)
           : "";
  return why.WithContext(range).Followed(resume);
}

Status Importer::Refused(const std::vector<Line>& lines, const Status& why) {
  if (!IsAboutALine(why) && !NeedsRoom(why)) {
    return why;
  }
  if (lines.size() > 1) {
    return SendOneByOne(lines);
  }
  const uint64_t number = lines.front().number;
  // The daemon counts lines within the request.
  const std::string own_count = "line 1: ";
  const Status status = why.message().starts_with(own_count)
                            ? why.WithMessage(why.message().substr(own_count.size()))
                            : why;
  return LeaveOut(
      number,
      why.reason() == "key_conflict" ? status.WithMessage(OfALine(status.message())) : status);
}

Status Importer::SendOneByOne(const std::vector<Line>& lines) {
  for (const Line& line : lines) {
    DELAYD_RETURN_IF_ERROR(Send({line}));
  }
  return OkStatus();
}

Status Importer::Record(const std::vector<Line>& lines, std::vector<protocol::EnqueuedJob>& jobs) {
  // Counted before the hooks run: the lines are enqueued, and a resume from before them would
  // enqueue them twice.
  counts_.imported += lines.size();
  counts_.settled_line = lines.back().number;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (jobs[i].existed) {
      ++counts_.existed;
      counts_.finished += jobs[i].job.state == JobState::kFinished ? 1U : 0U;
      counts_.dead += jobs[i].job.state == JobState::kDead ? 1U : 0U;
    }
    if (jobs[i].job.key.empty()) {
      jobs[i].job.key = lines[i].key;  // short answers have no key
    }
    DELAYD_RETURN_IF_ERROR(hooks_.acknowledged(lines[i].number, jobs[i]));
  }
  return hooks_.batch_done();
}

}  // namespace delayd::cli
