#include "tests/storm/history_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/check.h"
#include "base/clock.h"

namespace delayd::storm {
namespace {

std::string Array(const std::vector<std::string>& jobs) {
  std::string text = "[";
  for (const std::string& job : jobs) {
    text += (text.size() > 1 ? "," : "") + job;
  }
  return text + "]";
}

}  // namespace

std::string MakePayload(const std::string& label) {
  const size_t size = std::strtoull(label.c_str() + label.rfind('-') + 1, nullptr, 10);
  std::string payload = label + ":";
  payload.reserve(payload.size() + size);
  for (size_t i = 0; i < size; ++i) {
    payload += static_cast<char>('a' + (label.size() + i * 7 + i / 64) % 26);
  }
  return payload;
}

std::string LabelOf(std::string_view payload) {
  const size_t colon = payload.find(':');
  const std::string label(payload.substr(0, colon));
  if (colon == std::string_view::npos || label.find('-') == std::string::npos ||
      MakePayload(label) != payload) {
    return "damaged payload " + label.substr(0, 100);
  }
  return label;
}

HistoryLog::HistoryLog(const std::string& path, uint64_t proc)
    : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)), proc_(proc) {
  DELAYD_CHECK(fd_ >= 0);
}

HistoryLog::~HistoryLog() {
  ::close(fd_);
}

protocol::JsonObjectWriter HistoryLog::Begin(std::string_view phase) const {
  const Now now = SystemClock().Sample();
  protocol::JsonObjectWriter line;
  line.Number("t", static_cast<uint64_t>(ToMillis(now.boot)));
  line.Number("w", static_cast<uint64_t>(ToMillis(now.wall)));
  line.String("phase", phase);
  return line;
}

void HistoryLog::Append(protocol::JsonObjectWriter line) const {
  const std::string text = line.Take() + "\n";
  DELAYD_CHECK(::write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

uint64_t HistoryLog::Invoke(std::string_view op, const std::vector<std::string>& jobs) {
  protocol::JsonObjectWriter line = Begin("invoke");
  line.Number("proc", proc_);
  line.Number("n", next_);
  line.String("op", op);
  line.Raw("jobs", Array(jobs));
  Append(std::move(line));
  return next_++;
}

void HistoryLog::Ok(uint64_t request, uint64_t sequence, const std::vector<std::string>& jobs) {
  protocol::JsonObjectWriter line = Begin("ok");
  line.Number("proc", proc_);
  line.Number("n", request);
  line.Number("seq", sequence);
  line.Raw("jobs", Array(jobs));
  Append(std::move(line));
}

void HistoryLog::Fail(uint64_t request, uint64_t sequence, std::string_view code) {
  protocol::JsonObjectWriter line = Begin("fail");
  line.Number("proc", proc_);
  line.Number("n", request);
  line.Number("seq", sequence);
  line.String("code", code);
  Append(std::move(line));
}

void HistoryLog::Unknown(uint64_t request) {
  protocol::JsonObjectWriter line = Begin("unknown");
  line.Number("proc", proc_);
  line.Number("n", request);
  Append(std::move(line));
}

void HistoryLog::Note(std::string_view op, const std::vector<std::string>& jobs) {
  protocol::JsonObjectWriter line = Begin("ok");
  line.String("op", op);
  line.Raw("jobs", Array(jobs));
  Append(std::move(line));
}

void HistoryLog::Disk(const StoppedStore& store) {
  std::vector<std::string> faults;
  for (const std::string& fault : store.faults) {
    faults.push_back(protocol::JsonString(fault));
  }
  protocol::JsonObjectWriter line = Begin("ok");
  line.String("op", "disk");
  line.Number("seq", store.batch);
  line.Raw("jobs", Array(store.jobs));
  line.Raw("faults", Array(faults));
  Append(std::move(line));
}

void HistoryLog::KeyRetention(int64_t millis) {
  protocol::JsonObjectWriter line = Begin("ok");
  line.String("op", "config");
  line.Number("key_retention", static_cast<uint64_t>(millis));
  Append(std::move(line));
}

}  // namespace delayd::storm
