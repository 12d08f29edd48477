// daemon/engine/list_page.h — one page of a list, and the cursor that leads to the next.
//
// What:    a cursor is the place of the last row that was looked at: (time, id) in hexadecimal. The
//          next page seeks to it afresh, so no snapshot is held between pages.
// Errors:  kInvalidArgument "invalid_cursor".
// Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/coding.h"
#include "base/job.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/time.h"
#include "daemon/engine/command.h"

namespace delayd::engine {

struct ListCursor {
  WallTime at;
  JobId id{};

  // The first place behind this one.
  ListCursor Next() const { return {.at = at, .id = JobId{ToInt(id) + 1}}; }

  // This place, or the first one at `first` if that is later: rows before it are deleted.
  ListCursor NotBefore(WallTime first) const {
    return at >= first ? *this : ListCursor{.at = first, .id = JobId{}};
  }

  friend auto operator<=>(const ListCursor&, const ListCursor&) = default;
};

std::string FormatListCursor(const ListCursor& cursor);
// Empty text stands for the beginning.
StatusOr<ListCursor> ParseListCursor(std::string_view text);
// The error for a cursor that no page of that request has given.
Status MalformedCursor();

class ListPage {
 public:
  explicit ListPage(const List& command)
      : limit_(command.limit == 0 ? limits::kListLimitDefault : command.limit) {}

  // Takes the row at `place` (nothing when the filter leaves it out) and returns whether to go on
  // with the next.
  bool Add(const ListCursor& place, std::optional<JobView> view) {
    if (view && (list_.jobs.size() == limit_ || bytes_ > limits::kListBytesMax)) {
      list_.next_cursor = FormatListCursor(last_);
      return false;
    }
    last_ = place;
    if (view) {
      bytes_ += BytesOf(*view);
      list_.jobs.push_back(std::move(*view));
    }
    if (++rows_ == limits::kListScanRowsMax) {
      list_.next_cursor = FormatListCursor(last_);
      return false;
    }
    return true;
  }

  JobList Take() { return std::move(list_); }

 private:
  static size_t BytesOf(const JobView& view) {
    size_t bytes = view.payload ? view.payload->size() : 0;
    for (const JobEvent& event : view.history) {
      bytes += event.who.size() + event.what.size();
    }
    return bytes;
  }

  const size_t limit_;
  JobList list_;
  ListCursor last_;
  size_t rows_ = 0;
  size_t bytes_ = 0;  // of payloads and histories
};

}  // namespace delayd::engine
