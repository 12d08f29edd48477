#include "cli/set_aside.h"

#include <algorithm>

namespace delayd::cli {
namespace {

constexpr size_t kNamesMax = 10;

}  // namespace

size_t SetAside::CountOf(std::string_view tube) const {
  return static_cast<size_t>(
      std::ranges::count_if(jobs_, [tube](const auto& one) { return one.second.tube == tube; }));
}

Status SetAside::Put(uint64_t id, std::string_view stats) {
  const auto field = [stats](std::string_view key) { return beanstalk::StatsField(stats, key); };
  Job job{.tube = std::string(field("tube")),
          .priority = std::string(field("pri")),
          .state = std::string(field("state")),
          .seconds_left = beanstalk::StatsNumber(stats, "time-left"),
          .age = beanstalk::StatsNumber(stats, "age")};
  const Job& known = jobs_.try_emplace(id, std::move(job)).first->second;
  return Bury(id, known.priority);
}

// Both commands go in one write: if we died between them, the reserved job would become ready. A
// job that we have already reserved is only buried. One whose state has changed meanwhile makes
// both fail; we may meet it again.
Status SetAside::Bury(uint64_t id, const std::string& priority) {
  const std::string number = std::to_string(id);
  source_->Add("reserve-job " + number);
  source_->Add("bury " + number + " " + priority);
  DELAYD_RETURN_IF_ERROR(source_->Read().status());
  return source_->Read().status();
}

Status SetAside::PutBack() {
  for (const auto& [id, job] : jobs_) {
    const std::string number = std::to_string(id);
    if (job.state == "delayed") {
      DELAYD_RETURN_IF_ERROR(Delay(number, job));
    } else if (job.state != "buried") {
      DELAYD_RETURN_IF_ERROR(source_->Call("kick-job " + number).status());
    }
  }
  return OkStatus();
}

Status SetAside::Delay(const std::string& number, const Job& job) {
  DELAYD_ASSIGN_OR_RETURN(const beanstalk::ServerReply stats, source_->Call("stats-job " + number));
  if (beanstalk::StatsField(stats.body, "state") != "buried") {
    return OkStatus();
  }
  // A job's age shrinks when the source's clock is set back.
  const uint64_t age = std::max(beanstalk::StatsNumber(stats.body, "age"), job.age);
  const uint64_t passed = age - job.age;
  const uint64_t left = job.seconds_left - std::min(passed, job.seconds_left);
  source_->Add("reserve-job " + number);
  source_->Add("release " + number + " " + job.priority + " " + std::to_string(left + 1));
  DELAYD_RETURN_IF_ERROR(source_->Read().status());
  return source_->Read().status();
}

std::string SetAside::Names() const {
  std::string names;
  size_t count = 0;
  for (const auto& [id, job] : jobs_) {
    if (count++ == kNamesMax) {
      return names + " and " + std::to_string(jobs_.size() - kNamesMax) + " more";
    }
    names += (names.empty() ? "id " : ", id ") + std::to_string(id) + " of tube " + job.tube +
             (job.state == "buried" ? " (buried)" : "");
  }
  return names;
}

}  // namespace delayd::cli
