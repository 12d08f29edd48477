// daemon/http/http_date.h — the time in the format of the Date header.
//
// Units:   whole seconds of the wall clock, rounded down, UTC.
// Errors:  none.
// Threads: one.
// Cost:    a comparison within the same second; no allocation.
// Source:  RFC 9110, sections 5.6.7 and 6.6.1.
#pragma once

#include <string>
#include <string_view>

#include "base/time.h"

namespace delayd::http {

class HttpDate {
 public:
  void Set(WallTime now);

  // "Sun, 06 Nov 1994 08:49:37 GMT"; empty before the first Set.
  std::string_view text() const { return text_; }

 private:
  int64_t second_ = 0;
  std::string text_;
};

}  // namespace delayd::http
