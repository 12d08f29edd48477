#include "daemon/http/target.h"

#include "protocol/nearest.h"
#include "protocol/uri.h"

namespace delayd::http {

namespace {

// Calls `take` for each part between separators; stops at the first error.
template <typename Take>
Status Split(std::string_view text, char separator, const Take& take) {
  while (true) {
    const size_t end = text.find(separator);
    DELAYD_RETURN_IF_ERROR(take(text.substr(0, end)));
    if (end == std::string_view::npos) {
      return OkStatus();
    }
    text.remove_prefix(end + 1);
  }
}

Status TakeParameter(std::string_view part, Target* target) {
  if (part.empty()) {
    return OkStatus();  // "a=1&&b=2" and a lone '?' do no harm
  }
  const size_t equals = part.find('=');
  const StatusOr<std::string> name = protocol::PercentDecode(part.substr(0, equals));
  DELAYD_RETURN_IF_ERROR(name.status());
  const StatusOr<std::string> value = protocol::PercentDecode(
      equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1));
  DELAYD_RETURN_IF_ERROR(value.status());
  for (const auto& [known, ignored] : target->query) {
    if (known == *name) {
      return InvalidArgument(
          "query parameter " + protocol::Quoted(*name) + " is given twice; give it once",
          "invalid_parameter");
    }
  }
  target->query.emplace_back(*name, *value);
  return OkStatus();
}

}  // namespace

StatusOr<Target> ParseTarget(std::string_view text) {
  if (!text.starts_with('/')) {
    return InvalidArgument(
        "the target " + protocol::Quoted(text) + " must be a path such as /v1/jobs",
        "invalid_target");
  }
  Target target;
  const size_t mark = text.find('?');
  const auto take_segment = [&target](std::string_view part) -> Status {
    StatusOr<std::string> segment = protocol::PercentDecode(part);
    DELAYD_RETURN_IF_ERROR(segment.status());
    target.segments.push_back(*std::move(segment));
    return OkStatus();
  };
  DELAYD_RETURN_IF_ERROR(
      Split(text.substr(1, mark == std::string_view::npos ? mark : mark - 1), '/', take_segment));
  if (mark != std::string_view::npos) {
    DELAYD_RETURN_IF_ERROR(Split(text.substr(mark + 1), '&', [&target](std::string_view part) {
      return TakeParameter(part, &target);
    }));
  }
  return target;
}

}  // namespace delayd::http
