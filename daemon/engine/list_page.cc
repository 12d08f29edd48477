#include "daemon/engine/list_page.h"

#include <charconv>
#include <cstdio>

namespace delayd::engine {

std::string FormatListCursor(const ListCursor& cursor) {
  char text[40];
  std::snprintf(text,
                sizeof text,
                "%llx-%llx",
                static_cast<unsigned long long>(ToMillis(cursor.at)),
                static_cast<unsigned long long>(ToInt(cursor.id)));
  return text;
}

Status MalformedCursor() {
  return InvalidArgument("cursor is malformed; pass next_cursor exactly as the page before gave it",
                         "invalid_cursor");
}

StatusOr<ListCursor> ParseListCursor(std::string_view text) {
  if (text.empty()) {
    return ListCursor();
  }
  const auto parse = [](std::string_view part, uint64_t* value) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), *value, 16);
    return error == std::errc() && end == part.data() + part.size();
  };
  const size_t dash = text.find('-');
  uint64_t at = 0;
  uint64_t id = 0;
  if (dash == std::string_view::npos || !parse(text.substr(0, dash), &at) ||
      !parse(text.substr(dash + 1), &id) || at > static_cast<uint64_t>(limits::kWallMsMax) ||
      id > limits::kJobIdMax) {
    return MalformedCursor();
  }
  return ListCursor{.at = WallFromMillis(static_cast<int64_t>(at)), .id = JobId{id}};
}

}  // namespace delayd::engine
