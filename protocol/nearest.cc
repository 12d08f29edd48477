#include "protocol/nearest.h"

#include <algorithm>
#include <vector>

#include "base/utf8.h"

namespace delayd::protocol {
namespace {

// A longer word is not a typing error.
constexpr size_t kWordBytesMax = 64;

size_t Distance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<size_t> table((a.size() + 1) * width);
  const auto at = [&](size_t i, size_t j) -> size_t& { return table[i * width + j]; };
  for (size_t i = 0; i <= a.size(); ++i) {
    at(i, 0) = i;
  }
  for (size_t j = 0; j <= b.size(); ++j) {
    at(0, j) = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
      }
    }
  }
  return at(a.size(), b.size());
}

}  // namespace

std::string_view Nearest(std::string_view word, std::span<const std::string_view> known) {
  if (word.size() > kWordBytesMax) {
    return {};
  }
  std::string_view best;
  size_t best_distance = 0;
  // Every option begins with dashes, so they do not count as letters in common.
  const size_t dashes = std::min(word.find_first_not_of('-'), word.size());
  for (const std::string_view candidate : known) {
    const size_t distance = Distance(word, candidate);
    const size_t allowed = (std::max(word.size(), candidate.size()) - dashes + 2) / 3;
    if (distance <= allowed && (best.empty() || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view nearest = Nearest(word, known);
  return nearest.empty() ? std::string() : "; did you mean '" + std::string(nearest) + "'?";
}

std::string Quoted(std::string_view text) {
  return "'" + Printable(text) + "'";
}

}  // namespace delayd::protocol
