// base/outgoing_bytes.h — bytes to be sent that have not gone out yet.
//
// What:    text is appended at the back and leaves from the front as fast as the peer takes it. The
//          memory of sent bytes is released even if there is always something waiting.
// Units:   bytes.
// Errors:  none.
// Threads: one.
// Cost:    amortised constant per byte; memory at most twice what waits, plus kTrimBytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/check.h"

namespace delayd {

class OutgoingBytes {
 public:
  static constexpr size_t kTrimBytes = size_t{64} * 1024;

  // Keeps this much memory while nothing waits.
  explicit OutgoingBytes(size_t idle_bytes = kTrimBytes) : idle_bytes_(idle_bytes) {}

  // Only for appending. Valid until the next Sent.
  std::string* tail() { return &bytes_; }

  std::string_view unsent() const { return std::string_view(bytes_).substr(sent_); }

  size_t size() const { return bytes_.size() - sent_; }

  bool empty() const { return size() == 0; }

  void Sent(size_t bytes) {
    DELAYD_CHECK(bytes <= size());
    sent_ += bytes;
    if (empty()) {
      bytes_.clear();
      sent_ = 0;
      if (bytes_.capacity() > idle_bytes_) {
        bytes_.shrink_to_fit();
      }
    } else if (sent_ >= kTrimBytes && sent_ >= size()) {
      bytes_.erase(0, sent_);
      sent_ = 0;
    }
  }

 private:
  size_t idle_bytes_;
  std::string bytes_;
  size_t sent_ = 0;  // how much of the front of bytes_ was sent
};

}  // namespace delayd
