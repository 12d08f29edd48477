// protocol/client.h — a blocking HTTP client of the daemon's API, for the command line, workers and
// tests.
//
// Units:   timeouts in milliseconds, covering the whole request.
// Errors:  kUnavailable "unreachable" with the address, the cause and the cure when there is no
//          daemon. If the request may have changed something, kUnknown: "outcome_unknown" when the
//          connection broke, "timed_out", or "invalid_response" when the answer was not HTTP; if it
//          cannot have, kUnavailable "connection_lost", kDeadlineExceeded "timed_out" or kInternal
//          "invalid_response". Whatever the daemon itself answered is a response, not an error:
//          ParseProblem turns it into a Status.
// Threads: one at a time; open one client per thread.
// Cost:    one connection, kept alive, and reopened when the daemon has closed it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "protocol/uri.h"  // PercentEncode, for targets

namespace delayd::protocol {

// Ends the message about a change whose outcome is unknown.
inline constexpr std::string_view kMayBeDone =
    "; the request may have been carried out: look before you repeat it";

// The message without that warning, for a caller that repeats only harmless requests.
std::string WithoutWarning(const Status& status);

struct HttpResponse {
  int status = 0;
  std::string body;
  uint64_t commit_sequence = 0;    // the Delayd-Commit header; 0 when there is none
  std::optional<WallTime> date{};  // the Date header: the daemon's time, in whole seconds
  std::string location{};          // the Location header
};

class Client {
 public:
  // "unix:/run/delayd/delayd.sock", "http://127.0.0.1:11380" or "https://jobs.example:11380".
  // Connects on the first request. With TLS the server must show a certificate for its host from an
  // authority in the PEM file `ca_file` or, when that is empty, from one that the system trusts.
  static StatusOr<std::unique_ptr<Client>> Create(std::string_view server,
                                                  const std::string& ca_file = {});
  virtual ~Client() = default;

  // The bearer token of every request from now on.
  virtual void UseToken(std::string token) = 0;

  // Sent with every request from now on, except GET. An empty value removes the header.
  virtual void UseHeader(std::string_view name, std::string_view value) = 0;

  // From now on a call ends as at its timeout once `fd` is readable and no more of the answer has
  // come for `grace`; -1: never.
  virtual void GiveUpWhen(int fd, Millis grace) = 0;

  // `target` stands as on the request line, already percent-encoded; an empty content type means
  // that there is no body.
  virtual StatusOr<HttpResponse> Call(std::string_view method,
                                      std::string_view target,
                                      std::string_view content_type,
                                      std::string_view body,
                                      Millis timeout) = 0;
};

}  // namespace delayd::protocol
