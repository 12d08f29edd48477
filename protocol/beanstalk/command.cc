#include "protocol/beanstalk/command.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <system_error>

#include "base/job.h"
#include "base/limits.h"
#include "base/utf8.h"

namespace delayd::beanstalk {
namespace {

constexpr uint64_t kU32Max = std::numeric_limits<uint32_t>::max();

// What follows the verb.
enum class Form : uint8_t {
  kNothing,
  kAnything,
  kTube,
  kId,
  kIdPriority,
  kIdPriorityDelay,
  kCount,
  kTimeout,
  kTubeDelay,
  kPut,
  kPutMs,
  kPutKey,
  kPutBatch,
  kDeleteBatch,
  kCountTimeout,
  kKey,
};

struct Word {
  std::string_view prefix;
  Verb verb;
  Form form;
};

// The first entry that the line begins with is its verb. A trailing space is part of the verb:
// "put" alone is unknown, and "stats x" is a stats followed by something wrong.
constexpr auto kWords = std::to_array<Word>({
    {"put ", Verb::kPut, Form::kPut},
    {"reserve-with-timeout ", Verb::kReserveWithTimeout, Form::kTimeout},
    {"reserve-job ", Verb::kReserveJob, Form::kId},
    {"reserve-batch ", Verb::kReserveBatch, Form::kCountTimeout},
    {"reserve", Verb::kReserve, Form::kNothing},
    {"delete ", Verb::kDelete, Form::kId},
    {"release ", Verb::kRelease, Form::kIdPriorityDelay},
    {"bury ", Verb::kBury, Form::kIdPriority},
    {"touch ", Verb::kTouch, Form::kId},
    {"use ", Verb::kUse, Form::kTube},
    {"watch ", Verb::kWatch, Form::kTube},
    {"ignore ", Verb::kIgnore, Form::kTube},
    {"peek ", Verb::kPeek, Form::kId},
    {"peek-ready", Verb::kPeekReady, Form::kNothing},
    {"peek-delayed", Verb::kPeekDelayed, Form::kNothing},
    {"peek-buried", Verb::kPeekBuried, Form::kNothing},
    {"kick ", Verb::kKick, Form::kCount},
    {"kick-job ", Verb::kKickJob, Form::kId},
    {"pause-tube", Verb::kPauseTube, Form::kTubeDelay},
    {"stats-job ", Verb::kStatsJob, Form::kId},
    {"stats-tube ", Verb::kStatsTube, Form::kTube},
    {"stats", Verb::kStats, Form::kNothing},
    {"list-tubes-watched", Verb::kListTubesWatched, Form::kNothing},
    {"list-tube-used", Verb::kListTubeUsed, Form::kNothing},
    {"list-tubes", Verb::kListTubes, Form::kNothing},
    {"quit", Verb::kQuit, Form::kAnything},
    {"put-ms ", Verb::kPutMs, Form::kPutMs},
    {"put-key ", Verb::kPutKey, Form::kPutKey},
    {"put-batch ", Verb::kPutBatch, Form::kPutBatch},
    {"delete-key ", Verb::kDeleteKey, Form::kKey},
    {"delete-batch ", Verb::kDeleteBatch, Form::kDeleteBatch},
});

// 1 to 200 bytes without spaces and control characters.
bool IsKey(std::string_view key) {
  return !key.empty() && key.size() <= limits::kKeyBytesMax &&
         std::all_of(key.begin(),
                     key.end(),
                     [](char c) {
                       const auto byte = static_cast<unsigned char>(c);
                       return byte > ' ' && byte != 0x7f;
                     }) &&
         IsShortUtf8(key);
}

// The next number, after any spaces; false when there is none or it is above `max`.
bool ReadNumber(std::string_view* rest, uint64_t max, uint64_t* number) {
  rest->remove_prefix(std::min(rest->find_first_not_of(' '), rest->size()));
  const auto [end, error] = std::from_chars(rest->data(), rest->data() + rest->size(), *number);
  if (error != std::errc() || *number > max) {
    return false;
  }
  rest->remove_prefix(static_cast<size_t>(end - rest->data()));
  return true;
}

bool ReadU32(std::string_view* rest, uint32_t* number) {
  uint64_t wide = 0;
  const bool read = ReadNumber(rest, kU32Max, &wide);
  *number = static_cast<uint32_t>(wide);
  return read;
}

bool ReadSeconds(std::string_view* rest, Millis* duration) {
  uint32_t seconds = 0;
  const bool read = ReadU32(rest, &seconds);
  *duration = Millis(int64_t{seconds} * 1000);
  return read;
}

bool ReadMillis(std::string_view* rest, Millis* duration) {
  uint64_t millis = 0;
  const bool read = ReadNumber(rest, limits::kDelayMsMax, &millis);
  *duration = Millis(static_cast<int64_t>(millis));
  return read;
}

// " KEY" to the end of the line.
bool ReadKey(std::string_view rest, std::string_view* key) {
  if (!rest.starts_with(' ')) {
    return false;
  }
  *key = rest.substr(1);
  return IsKey(*key);
}

// The numbers of a put. The time to run is at least a second, or a millisecond if `millis`.
bool ReadPutNumbers(std::string_view* rest, bool millis, Command* command) {
  const bool read =
      ReadU32(rest, &command->priority) &&
      (millis ? ReadMillis(rest, &command->delay) && ReadMillis(rest, &command->ttr)
              : ReadSeconds(rest, &command->delay) && ReadSeconds(rest, &command->ttr)) &&
      ReadNumber(rest, kU32Max, &command->body_bytes);
  command->ttr = std::max(command->ttr, millis ? Millis(1) : Millis(1000));
  return read;
}

// The number after `words` words, whatever those are: even if the line is refused, a body follows
// it, not a command.
bool ReadSize(std::string_view rest, int words, uint64_t* bytes) {
  for (; words > 0; --words) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    rest.remove_prefix(std::min(rest.find(' '), rest.size()));
  }
  return ReadNumber(&rest, kU32Max, bytes);
}

// Checks the numbers, then the size, then the rest of the line. The order matters: the body of a
// put that is too big follows, whatever the rest of its line.
Refusal ReadPut(Form form, std::string_view rest, size_t job_bytes_max, Command* command) {
  if (!ReadPutNumbers(&rest, form != Form::kPut, command)) {
    return Refusal::kBadFormat;
  }
  if (command->body_bytes > job_bytes_max) {
    return Refusal::kJobTooBig;
  }
  const bool good = form == Form::kPutKey ? ReadKey(rest, &command->name) : rest.empty();
  return good ? Refusal::kNone : Refusal::kBadFormat;
}

Refusal ReadBatch(std::string_view rest, size_t bytes_max, Command* command) {
  if (!ReadNumber(&rest, kBatchJobsMax, &command->count) ||
      !ReadNumber(&rest, kU32Max, &command->body_bytes)) {
    return Refusal::kBadFormat;
  }
  if (command->body_bytes > bytes_max) {
    return Refusal::kJobTooBig;
  }
  return rest.empty() && command->count > 0 ? Refusal::kNone : Refusal::kBadFormat;
}

// The name is not checked: beanstalkd counts the command first.
bool ReadTubeDelay(std::string_view rest, Command* command) {
  if (!rest.starts_with(' ')) {
    return false;
  }
  rest.remove_prefix(1);
  const size_t end = rest.find(' ');
  if (end == std::string_view::npos) {
    return false;
  }
  command->name = rest.substr(0, end);
  rest.remove_prefix(end);
  return !command->name.empty() && ReadSeconds(&rest, &command->delay) && rest.empty();
}

bool ReadArguments(Form form, std::string_view rest, Command* command) {
  constexpr uint64_t kU64Max = std::numeric_limits<uint64_t>::max();
  constexpr uint64_t kTimeoutMax = std::numeric_limits<int32_t>::max();
  switch (form) {
    case Form::kNothing:
      return rest.empty();
    case Form::kTube:
      command->name = rest;
      return IsQueueName(rest);
    case Form::kKey:
      command->name = rest;
      return IsKey(rest);
    case Form::kId:
      return ReadNumber(&rest, kU64Max, &command->id) && rest.empty();
    case Form::kIdPriority:
      return ReadNumber(&rest, kU64Max, &command->id) && ReadU32(&rest, &command->priority) &&
             rest.empty();
    case Form::kIdPriorityDelay:
      return ReadNumber(&rest, kU64Max, &command->id) && ReadU32(&rest, &command->priority) &&
             ReadSeconds(&rest, &command->delay) && rest.empty();
    case Form::kCount:  // here and in kTimeout, anything after the number is ignored
      return ReadNumber(&rest, kU32Max, &command->count);
    case Form::kTimeout:
      return ReadNumber(&rest, kTimeoutMax, &command->timeout);
    case Form::kCountTimeout:
      return ReadNumber(&rest, kBatchJobsMax, &command->count) && command->count > 0 &&
             ReadNumber(&rest, kTimeoutMax, &command->timeout) && rest.empty();
    case Form::kTubeDelay:
      return ReadTubeDelay(rest, command);
    case Form::kAnything:
    case Form::kPut:
    case Form::kPutMs:
    case Form::kPutKey:
    case Form::kPutBatch:
    case Form::kDeleteBatch:
      break;
  }
  return true;
}

Refusal ReadBehindVerb(Form form, std::string_view rest, size_t job_bytes_max, Command* command) {
  switch (form) {
    case Form::kPut: {  // as beanstalkd does it
      const Refusal refusal = ReadPut(form, rest, job_bytes_max, command);
      command->has_body = refusal != Refusal::kBadFormat;
      return refusal;
    }
    case Form::kPutMs:
    case Form::kPutKey:
      command->has_body = ReadSize(rest, 3, &command->body_bytes);
      return ReadPut(form, rest, job_bytes_max, command);
    case Form::kPutBatch:
    case Form::kDeleteBatch:
      command->has_body = ReadSize(rest, 1, &command->body_bytes);
      return ReadBatch(rest, form == Form::kPutBatch ? kBatchBytesMax : kIdsBytesMax, command);
    default:
      return ReadArguments(form, rest, command) ? Refusal::kNone : Refusal::kBadFormat;
  }
}

}  // namespace

Command ParseCommandLine(std::string_view line, size_t job_bytes_max) {
  Command command;
  const bool has_nul = line.find('\0') != std::string_view::npos;
  for (const Word& word : kWords) {
    // Our own verbs refuse a NUL themselves, since they may have a body.
    if (!line.starts_with(word.prefix) || (has_nul && !IsOurs(word.verb))) {
      continue;
    }
    command.verb = word.verb;
    command.refusal =
        ReadBehindVerb(word.form, line.substr(word.prefix.size()), job_bytes_max, &command);
    return command;
  }
  command.refusal = has_nul ? Refusal::kBadFormat : Refusal::kUnknownCommand;
  return command;
}

Refusal ParseBatch(std::string_view body,
                   uint64_t count,
                   size_t job_bytes_max,
                   std::vector<BatchJob>* jobs) {
  for (uint64_t i = 0; i < count; ++i) {
    const size_t end = body.find("\r\n");
    if (end == std::string_view::npos) {
      return Refusal::kBadFormat;
    }
    std::string_view line = body.substr(0, end);
    body.remove_prefix(end + 2);
    Command numbers;
    BatchJob job;
    if (!ReadPutNumbers(&line, /*millis=*/true, &numbers) ||
        (!line.empty() && !ReadKey(line, &job.key))) {
      return Refusal::kBadFormat;
    }
    if (numbers.body_bytes > job_bytes_max) {
      return Refusal::kJobTooBig;
    }
    if (body.size() < numbers.body_bytes + 2) {
      return Refusal::kBadFormat;
    }
    job.priority = numbers.priority;
    job.delay = numbers.delay;
    job.ttr = numbers.ttr;
    job.body = body.substr(0, numbers.body_bytes);
    if (body.substr(numbers.body_bytes, 2) != "\r\n") {
      return Refusal::kExpectedCrlf;
    }
    body.remove_prefix(numbers.body_bytes + 2);
    jobs->push_back(job);
  }
  return body.empty() ? Refusal::kNone : Refusal::kBadFormat;
}

Refusal ParseIds(std::string_view body, uint64_t count, std::vector<uint64_t>* ids) {
  ids->reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t id = 0;
    if (!ReadNumber(&body, std::numeric_limits<uint64_t>::max(), &id)) {
      return Refusal::kBadFormat;
    }
    ids->push_back(id);
  }
  return body.empty() ? Refusal::kNone : Refusal::kBadFormat;
}

}  // namespace delayd::beanstalk
