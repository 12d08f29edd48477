// tests/storm/history_log.h — a client's hand in the history (docs/testing.md, "Histories").
//
// What:    all clients of a storm append to one file, one write() a line, so that the file's order
//          is an order in which things can have happened.
// Errors:  a failed check when the file cannot be written.
// Threads: one owner; many processes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/job.h"
#include "protocol/json_writer.h"
#include "tests/storm/stopped_store.h"

namespace delayd::storm {

// A payload stands in the history by its label: it tells everything about the payload.
//   "L:" and as many bytes as L says behind its last '-'.
std::string MakePayload(const std::string& label);
// The label, or what no client can have sent when the payload is not the one of its label.
std::string LabelOf(std::string_view payload);

class HistoryLog {
 public:
  HistoryLog(const std::string& path, uint64_t proc);
  ~HistoryLog();
  HistoryLog(const HistoryLog&) = delete;
  HistoryLog& operator=(const HistoryLog&) = delete;

  // `jobs`: JSON objects. Returns the number of the request.
  uint64_t Invoke(std::string_view op, const std::vector<std::string>& jobs);
  void Ok(uint64_t request, uint64_t sequence, const std::vector<std::string>& jobs);
  void Fail(uint64_t request, uint64_t sequence, std::string_view code);
  void Unknown(uint64_t request);

  // Of the storm itself: "kill", "final".
  void Note(std::string_view op, const std::vector<std::string>& jobs);
  void KeyRetention(int64_t millis);
  void Disk(const StoppedStore& store);

 private:
  protocol::JsonObjectWriter Begin(std::string_view phase) const;
  void Append(protocol::JsonObjectWriter line) const;

  int fd_;
  uint64_t proc_;
  uint64_t next_ = 1;
};

}  // namespace delayd::storm
