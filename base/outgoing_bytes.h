// base/outgoing_bytes.h — what is to be sent, as far as it has not gone.
//
// What:    text is appended behind, and leaves in front as fast as the other side takes it. What
//          has gone is let go of even while something always waits.
// Units:   bytes.
// Errors:  none.
// Threads: one.
// Cost:    amortised constant a byte; memory at most twice what waits, and kTrimBytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/check.h"

namespace delayd {

class OutgoingBytes {
 public:
  static constexpr size_t kTrimBytes = size_t{64} * 1024;

  // Of the memory, so much is kept when nothing waits.
  explicit OutgoingBytes(size_t idle_bytes = kTrimBytes) : idle_bytes_(idle_bytes) {}

  // To append to; nothing else may be done with it. Good until the next Sent.
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
  size_t sent_ = 0;  // the part of bytes_ that is gone
};

}  // namespace delayd
