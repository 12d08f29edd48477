#include "protocol/client.h"

#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "protocol/connection.h"
#include "protocol/duration.h"
#include "protocol/http_reader.h"
#include "protocol/server_address.h"
#include "protocol/tls.h"

namespace delayd::protocol {
namespace {

constexpr size_t kReceiveBytes = size_t{64} * 1024;

std::string RequestText(const ServerAddress& address,
                        std::string_view method,
                        std::string_view target,
                        std::string_view content_type,
                        std::string_view body,
                        std::string_view token,
                        std::string_view headers) {
  std::string text;
  text.reserve(256 + body.size());
  text.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: ");
  text.append(HostHeader(address)).append("\r\nUser-Agent: delayctl\r\n");
  if (!token.empty()) {
    text.append("Authorization: Bearer ").append(token).append("\r\n");
  }
  if (method != "GET") {
    text.append(headers);
  }
  if (!content_type.empty()) {
    text.append("Content-Type: ").append(content_type).append("\r\n");
  }
  if (!content_type.empty() || method != "GET") {
    text.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n");
  }
  text.append("\r\n").append(body);
  return text;
}

class SocketClient final : public Client {
 public:
  SocketClient(ServerAddress address, TlsContext::Ptr tls)
      : address_(std::move(address)), tls_(std::move(tls)) {}

  void UseToken(std::string token) override { token_ = std::move(token); }

  void UseHeader(std::string_view name, std::string_view value) override {
    headers_.insert_or_assign(std::string(name), std::string(value));
    header_lines_.clear();
    for (const auto& [one, text] : headers_) {
      if (!text.empty()) {
        header_lines_.append(one).append(": ").append(text).append("\r\n");
      }
    }
  }

  void GiveUpWhen(int fd, Millis grace) override { connection_.GiveUpWhen(fd, grace); }

  StatusOr<HttpResponse> Call(std::string_view method,
                              std::string_view target,
                              std::string_view content_type,
                              std::string_view body,
                              Millis timeout) override;

 private:
  // How far one try got, which decides whether the daemon may have acted on it.
  struct Try {
    bool reused = false;
    bool sent_all = false;
    bool answered = false;
  };

  StatusOr<HttpResponse> Exchange(std::string_view request, BootTime deadline, Try* progress);
  StatusOr<HttpResponse> ReadResponse(BootTime deadline, Try* progress);
  // `harmless`: the daemon cannot have changed anything.
  Status Explain(const Status& status, bool harmless, Millis timeout) const;

  ServerAddress address_;
  TlsContext::Ptr tls_;  // null: no TLS
  std::string token_;
  std::map<std::string, std::string> headers_;
  std::string header_lines_;
  Connection connection_;
};

StatusOr<HttpResponse> SocketClient::ReadResponse(BootTime deadline, Try* progress) {
  HttpReader reader;
  std::array<char, kReceiveBytes> buffer;  // NOLINT: filled by Receive
  while (!reader.done()) {
    DELAYD_ASSIGN_OR_RETURN(const size_t count,
                            connection_.Receive(buffer.data(), buffer.size(), deadline));
    if (count == 0) {
      if (!progress->answered || !reader.FeedEnd().ok() || !reader.done()) {
        // A TLS server silently hangs up on a client that does not speak TLS.
        const bool may_want_tls =
            !progress->answered && !progress->reused && address_.path.empty() && !address_.tls;
        return Unavailable(std::string("connection lost: the daemon closed it") +
                               (may_want_tls ? " (where it speaks TLS, write https://)" : ""),
                           "connection_lost");
      }
      break;
    }
    progress->answered = true;
    DELAYD_RETURN_IF_ERROR(reader.Feed({buffer.data(), count}));
  }
  if (!reader.keep_alive()) {
    connection_.Close();
  }
  return reader.Take();
}

StatusOr<HttpResponse> SocketClient::Exchange(std::string_view request,
                                              BootTime deadline,
                                              Try* progress) {
  progress->reused = connection_.open() && connection_.Idle();
  if (!progress->reused) {
    DELAYD_RETURN_IF_ERROR(connection_.Open(address_, deadline, tls_));
  }
  size_t sent = 0;
  const Status status = connection_.Send(request, deadline, &sent);
  progress->sent_all = sent == request.size();
  if (status.code() == StatusCode::kDeadlineExceeded) {
    return status;
  }
  // A daemon that refuses a large body answers and closes before all of it has been sent.
  StatusOr<HttpResponse> response = ReadResponse(deadline, progress);
  if (!status.ok()) {
    connection_.Close();
    return response.ok() ? std::move(response) : StatusOr<HttpResponse>(status);
  }
  return response;
}

Status SocketClient::Explain(const Status& status, bool harmless, Millis timeout) const {
  const bool timed_out = status.reason() == "timed_out";
  const std::string what =
      timed_out ? "no answer within " + FormatDuration(timeout) : std::string(status.message());
  if (status.reason() == "invalid_response") {
    return harmless ? status
                    : Unknown(status.message() + std::string(kMayBeDone), "invalid_response");
  }
  if (harmless && status.reason() != "connection_lost" && !timed_out) {
    return status;
  }
  const std::string at = "delayd at " + address_.text + ": " + what;
  if (harmless) {
    return timed_out
               ? DeadlineExceeded(at + "; try again, or give more time with --timeout", "timed_out")
               : Unavailable(at + "; nothing was changed, try again", "connection_lost");
  }
  // The reason stays "timed_out", so that the caller who set the timeout can tell.
  return Unknown(at + std::string(kMayBeDone), timed_out ? "timed_out" : "outcome_unknown");
}

StatusOr<HttpResponse> SocketClient::Call(std::string_view method,
                                          std::string_view target,
                                          std::string_view content_type,
                                          std::string_view body,
                                          Millis timeout) {
  const SystemClock clock;
  const BootTime deadline = clock.Sample().boot + timeout;
  const std::string request =
      RequestText(address_, method, target, content_type, body, token_, header_lines_);
  for (;;) {
    Try progress;
    StatusOr<HttpResponse> response = Exchange(request, deadline, &progress);
    if (response.ok()) {
      return response;
    }
    connection_.Close();
    // A kept-alive connection may have been closed just as we wrote. Try once more on a fresh one
    // if the daemon cannot have acted on the first try.
    const bool harmless = method == "GET" || !progress.sent_all;
    if (progress.reused && harmless && !progress.answered &&
        response.status().reason() == "connection_lost") {
      continue;
    }
    return Explain(response.status(), harmless, timeout);
  }
}

// Clients that trust the same file share one context: a worker has up to a thousand clients, and
// the system's authorities take 20 ms to read and 0.8 MB.
StatusOr<TlsContext::Ptr> SharedTls(const std::string& ca_file) {
  static std::mutex mutex;
  static auto& shared = *new std::map<std::string, std::weak_ptr<const TlsContext>>();
  const std::lock_guard lock(mutex);
  std::weak_ptr<const TlsContext>& known = shared[ca_file];
  TlsContext::Ptr tls = known.lock();
  if (tls == nullptr) {
    DELAYD_ASSIGN_OR_RETURN(tls, TlsContext::ForClient(ca_file));
    known = tls;
  }
  return tls;
}

}  // namespace

std::string WithoutWarning(const Status& status) {
  return status.message().substr(0, status.message().find(kMayBeDone));
}

StatusOr<std::unique_ptr<Client>> Client::Create(std::string_view server,
                                                 const std::string& ca_file) {
  DELAYD_ASSIGN_OR_RETURN(ServerAddress address, ParseServerAddress(server));
  TlsContext::Ptr tls;
  if (address.tls) {
    DELAYD_ASSIGN_OR_RETURN(tls, SharedTls(ca_file));
  }
  return std::unique_ptr<Client>(
      std::make_unique<SocketClient>(std::move(address), std::move(tls)));
}

}  // namespace delayd::protocol
