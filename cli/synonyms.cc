#include "cli/synonyms.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "protocol/nearest.h"

namespace delayd::cli {
namespace {

// A shorter prefix matches too much.
constexpr size_t kPrefixBytesMin = 3;

struct Synonym {
  std::string_view word;
  std::array<std::string_view, 3> ours;  // the first one that the verb has is suggested
};

constexpr Synonym kSynonyms[] = {
    {"--delay", {"--in", "--for", "--lease"}},
    {"--delay-seconds", {"--in", "--delay"}},
    {"--after", {"--in", "--due-after", "--from"}},
    {"--since", {"--due-after", "--from"}},
    {"--before", {"--due-before", "--to"}},
    {"--until", {"--due-before", "--to", "--for"}},
    {"--run-at", {"--at"}},
    {"--run-after", {"--in"}},
    {"--due", {"--at", "--due-before"}},
    {"--when", {"--at"}},
    {"--eta", {"--at"}},
    {"--not-before", {"--at"}},
    {"--schedule", {"--at"}},
    {"--duration", {"--for", "--lease", "--in"}},
    {"--tube", {"--queue"}},
    {"--topic", {"--queue"}},
    {"--channel", {"--queue"}},
    {"--ttl", {"--expires-after"}},
    {"--expiry", {"--expires-after"}},
    {"--expiration", {"--expires-after"}},
    {"--ttr", {"--lease"}},
    {"--visibility", {"--lease"}},
    {"--visibility-timeout", {"--lease"}},
    {"--pri", {"--priority"}},
    {"--retries", {"--max-attempts"}},
    {"--retry", {"--max-attempts", "--retry-for"}},
    {"--max-retries", {"--max-attempts"}},
    {"--attempts", {"--max-attempts"}},
    {"--tries", {"--max-attempts"}},
    {"--id", {"ID", "--key"}},
    {"--job", {"ID", "--key"}},
    {"--job-id", {"ID", "--key"}},
    {"--name", {"--key"}},
    {"--unique", {"--key"}},
    {"--dedup-id", {"--key"}},
    {"--idempotency-key", {"--key"}},
    {"--data", {"PAYLOAD"}},
    {"--body", {"PAYLOAD"}},
    {"--payload", {"PAYLOAD"}},
    {"--message", {"PAYLOAD", "--error"}},
    {"--reason", {"--error"}},
    {"--token", {"TOKEN", "--token-file"}},
    {"--dir", {"DIR", "--data-dir"}},
    {"--status", {"--state"}},
    {"--prefix", {"--key-prefix"}},
    {"--limit", {"--count"}},
    {"--max", {"--limit", "--count"}},
    {"--count", {"--limit"}},
    {"--workers", {"--concurrency"}},
    {"--parallel", {"--concurrency"}},
    {"--threads", {"--concurrency"}},
    {"--jobs", {"--concurrency"}},
    {"--command", {"--exec"}},
    {"--cmd", {"--exec"}},
    {"--run", {"--exec"}},
    {"--url", {"--webhook", "--server"}},
    {"--once", {"--drain", "--count"}},
    {"--follow", {"--watch"}},
    {"--force", {"--yes"}},
    {"--json", {"--output"}},
    {"--format", {"--output"}},
    {"--silent", {"--quiet"}},
    {"--host", {"--server"}},
    {"--socket", {"--server"}},
    {"--address", {"--server"}},
    {"put", {"enqueue"}},
    {"add", {"enqueue"}},
    {"push", {"enqueue"}},
    {"send", {"enqueue"}},
    {"submit", {"enqueue"}},
    {"schedule", {"enqueue"}},
    {"publish", {"enqueue"}},
    {"create", {"enqueue"}},
    {"del", {"cancel"}},
    {"delete", {"cancel"}},
    {"rm", {"cancel"}},
    {"remove", {"cancel"}},
    {"ls", {"list"}},
    {"jobs", {"list"}},
    {"tail", {"list"}},
    {"get", {"show"}},
    {"peek", {"show"}},
    {"cat", {"show"}},
    {"move", {"reschedule"}},
    {"postpone", {"reschedule"}},
    {"snooze", {"reschedule"}},
    {"retry", {"kick"}},
    {"requeue", {"kick"}},
    {"trigger", {"run"}},
    {"reserve", {"lease"}},
    {"pop", {"lease"}},
    {"take", {"lease"}},
    {"receive", {"lease"}},
    {"done", {"ack"}},
    {"complete", {"ack"}},
    {"release", {"nack"}},
    {"fail", {"nack"}},
    {"renew", {"extend"}},
    {"heartbeat", {"extend"}},
    {"worker", {"work"}},
    {"consume", {"work"}},
    {"tubes", {"queues"}},
    {"topics", {"queues"}},
    {"unpause", {"resume"}},
    {"restore", {"import"}},
    {"dump", {"export"}},
    {"health", {"status"}},
    {"monitor", {"top"}},
    {"watch", {"top"}},
    {"check", {"verify"}},
    {"fsck", {"verify"}},
    {"repair", {"verify"}},
};

// Words of service managers; similar words of ours mean something else.
constexpr std::string_view kNotOurs[] = {"start", "stop", "restart"};

std::string_view OurWord(std::string_view word, std::span<const std::string_view> known) {
  for (const Synonym& synonym : kSynonyms) {
    if (synonym.word != word) {
      continue;
    }
    for (const std::string_view ours : synonym.ours) {
      if (!ours.empty() && std::find(known.begin(), known.end(), ours) != known.end()) {
        return ours;
      }
    }
  }
  return {};
}

// "--queue" for a verb that takes QUEUE as an argument, since other verbs take it as an option.
std::string_view Argument(std::string_view word, std::span<const std::string_view> known) {
  std::string name(word.substr(std::min(word.find_first_not_of('-'), word.size())));
  std::ranges::transform(
      name, name.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
  const auto found = std::ranges::find(known, name);
  return found == known.end() ? std::string_view() : *found;
}

// The only known word that begins with `word`.
std::string_view Begun(std::string_view word, std::span<const std::string_view> known) {
  const auto begins = [word](std::string_view one) { return one.starts_with(word); };
  const size_t letters = word.size() - std::min(word.find_first_not_of('-'), word.size());
  if (letters < kPrefixBytesMin || std::count_if(known.begin(), known.end(), begins) != 1) {
    return {};
  }
  return *std::find_if(known.begin(), known.end(), begins);
}

}  // namespace

std::string Suggestion(std::string_view word, std::span<const std::string_view> known) {
  if (std::ranges::find(kNotOurs, word) != std::end(kNotOurs)) {
    return {};
  }
  std::string_view meant = OurWord(word, known);
  meant = meant.empty() ? Argument(word, known) : meant;
  meant = meant.empty() ? Begun(word, known) : meant;
  meant = meant.empty() ? protocol::Nearest(word, known) : meant;
  if (meant.empty()) {
    return {};
  }
  return meant.front() >= 'A' && meant.front() <= 'Z'
             ? "; give " + std::string(meant) + " as an argument, without an option"
             : "; did you mean '" + std::string(meant) + "'?";
}

}  // namespace delayd::cli
