#include "daemon/http/field_values.h"

#include <algorithm>

#include "daemon/ip_address.h"

namespace delayd::http {

namespace {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

}  // namespace

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return lower;
}

std::string MediaType(std::string_view content_type) {
  return Lower(Trim(content_type.substr(0, content_type.find(';'))));
}

bool PrefersMinimal(std::string_view prefer) {
  while (!prefer.empty()) {
    const size_t end = std::min(prefer.find(','), prefer.size());
    const std::string_view text = prefer.substr(0, end);
    const std::string one = Lower(Trim(text.substr(0, text.find(';'))));
    if (one == "return=minimal" || one == "return=\"minimal\"") {
      return true;
    }
    prefer.remove_prefix(std::min(end + 1, prefer.size()));
  }
  return false;
}

std::string HostWithoutPort(std::string_view host) {
  const bool is_v6 = host.starts_with('[');
  const size_t end = std::min(is_v6 ? host.find(']') : host.find(':'), host.size());
  const std::string_view port = host.substr(std::min(end + (is_v6 ? 1 : 0), host.size()));
  const bool well_formed = (port.empty() ? !is_v6 || end < host.size() : port[0] == ':') &&
                           port.find_first_not_of("0123456789", 1) == std::string_view::npos;
  if (!well_formed) {
    return {};
  }
  return is_v6 ? CanonicalAddress(std::string(host.substr(1, end - 1))).value_or("")
               : Lower(host.substr(0, end));
}

std::optional<std::string> TakeAuthority(std::string* target) {
  if (target->starts_with('/')) {
    return std::nullopt;
  }
  const std::string begin = Lower(target->substr(0, 8));
  const size_t scheme = begin.starts_with("http://") ? 7 : begin == "https://" ? 8 : 0;
  if (scheme == 0) {
    return std::nullopt;
  }
  const size_t end = std::min(target->find_first_of("/?", scheme), target->size());
  std::string host = target->substr(scheme, end - scheme);
  const bool has_path = end < target->size() && (*target)[end] == '/';
  *target = (has_path ? "" : "/") + target->substr(end);
  return host;
}

}  // namespace delayd::http
