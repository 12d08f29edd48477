// Every JSON text that daemon and command line read. The first byte chooses the reader; what it
// accepts, our writer, where there is one, must write so that it reads back to the same.
#include <string>
#include <string_view>

#include "protocol/ack_json.h"
#include "protocol/cancel_json.h"
#include "protocol/job_json.h"
#include "protocol/problem.h"
#include "protocol/stats_json.h"
#include "tests/fuzz/require.h"

namespace {

using namespace delayd;
using namespace delayd::protocol;
using fuzz::Require;

constexpr size_t kPayloadBytesMax = 2048;
constexpr size_t kJobsMax = 8;

// `write` loses nothing that `read` has found; `again` reads what we write ourselves.
template <typename Read, typename Write, typename Again>
void RoundTrip(std::string_view text, const Read& read, const Write& write, const Again& again) {
  const auto first = read(text);
  if (!first.ok()) {
    Require(!first.status().message().empty(), "a refusal says why");
    return;
  }
  const std::string written = write(*first);
  const auto second = again(written);
  Require(second.ok(), second.status().message());
  Require(write(*second) == written, written);
}

template <typename Read, typename Write>
void RoundTrip(std::string_view text, const Read& read, const Write& write) {
  RoundTrip(text, read, write, read);
}

StatusOr<JobSpec> ReadSpec(std::string_view text) {
  StatusOr<JobSpec> spec = ParseJobSpec(text, kPayloadBytesMax);
  if (spec.ok()) {
    Require(ValidateQueueName(spec->queue).ok(), "the queue's name is valid");
    Require(spec->key.empty() || ValidateKey(spec->key).ok(), "the key is valid");
    Require(spec->payload.size() <= kPayloadBytesMax, "the payload is within the limit");
    const StatusOr<JobSpec> again = ParseJobSpec(JobSpecToJson(*spec), kPayloadBytesMax);
    Require(again.ok() && again->payload == spec->payload, "payloads come back byte for byte");
  }
  return spec;
}

// Of a request that we never write.
template <typename Read>
void TryList(std::string_view text, const Read& read) {
  const auto list = read(text);
  Require(list.ok() ? list->size() <= text.size() : !list.status().message().empty(),
          "what is read stands there, and a refusal says why");
}

StatusOr<std::vector<JobSpec>> ParseLines(std::string_view ndjson) {
  JobSpecLines lines;
  for (bool is_read = false; !is_read;) {
    DELAYD_ASSIGN_OR_RETURN(is_read, lines.Read(ndjson, 100, kPayloadBytesMax, kJobsMax));
  }
  return lines.TakeJobs();
}

void TryLines(std::string_view text) {
  const StatusOr<std::vector<JobSpec>> specs = ParseLines(text);
  if (!specs.ok()) {
    Require(specs.status().message().find("line ") != std::string_view::npos, "the line is named");
    return;
  }
  Require(specs->size() <= kJobsMax, "no more jobs than allowed");
  std::string lines;
  for (const JobSpec& spec : *specs) {
    lines += JobSpecToJson(spec) + "\n";
  }
  const StatusOr<std::vector<JobSpec>> again = ParseLines(lines);
  Require(again.ok() && again->size() == specs->size(), "as many jobs as were written");
}

void TryJob(char choice, std::string_view text) {
  switch (choice) {
    case 's':
      return RoundTrip(text, ReadSpec, JobSpecToJson);
    case 'x':
      return RoundTrip(
          text,
          [](std::string_view json) { return ParseExportedJob(json, kPayloadBytesMax); },
          JobSpecToJson,
          ReadSpec);
    case 'n':
      return TryLines(text);
    case 'j':
      return RoundTrip(text, ParseJob, JobToJson);
    case 'p':
      return RoundTrip(text, ParseJobPage, JobPageToJson);
    default:
      return RoundTrip(text, ParseEnqueued, EnqueuedToJson);
  }
}

void TryProblem(std::string_view text) {
  for (const int http_status : {200, 400, 409, 500, 599}) {
    const Status status = ParseProblem(http_status, text);
    Require(!status.ok() && !status.message().empty(), "a problem is an error with a message");
    (void)HttpReasonPhrase(HttpStatusOf(status));
    // What is not UTF-8 becomes so on the wire, and then stays as it is.
    const Status sent = ParseProblem(HttpStatusOf(status), ProblemToJson(status));
    const Status again = ParseProblem(HttpStatusOf(sent), ProblemToJson(sent));
    Require(again.message() == sent.message() && again.reason() == sent.reason() &&
                again.details() == sent.details(),
            sent.message());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (const char choice = static_cast<char>(data[0])) {
    case 'r':
      RoundTrip(text, ParseRescheduleRequest, RescheduleRequestToJson);
      break;
    case 'l':
      RoundTrip(
          text, [](std::string_view json) { return ParseLeaseRequest(json); }, LeaseRequestToJson);
      break;
    case 'a':
      TryList(text, ParseAckRequest);
      break;
    case 'i':
      TryList(text, ParseCancelRequest);
      break;
    case 'c':
      RoundTrip(
          text, [](std::string_view json) { return ParseLeaseChange(json); }, LeaseChangeToJson);
      break;
    case 'q':
      RoundTrip(text, ParseQueue, QueueToJson);
      break;
    case 'Q':
      RoundTrip(text, ParseQueues, [](const QueuePage& page) {
        return QueuesToJson(page.queues, page.next_cursor);
      });
      break;
    case 't':
      RoundTrip(text, ParseStats, StatsToJson);
      break;
    case 'h':
      RoundTrip(text, ParseHealth, HealthToJson);
      break;
    case 'e':
      TryProblem(text);
      break;
    default:
      TryJob(choice, text);
      break;
  }
  return 0;
}
