#include "cli/webhook_handler.h"

#include <netdb.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/coding.h"
#include "base/limits.h"
#include "cli/curl_library.h"
#include "cli/webhook_signature.h"
#include "protocol/nearest.h"
#include "protocol/uri.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace delayd::cli {
namespace {

// How much of an answer is read, and how much of its beginning goes into the job's last error.
constexpr size_t kAnswerBytesMax = size_t{64} << 10;
constexpr size_t kAnswerBytesKept = 512;
// A connection idle for longer is not reused. Receivers silently close idle connections, some after
// two seconds, many after five, and a call sent at that moment is lost.
constexpr long kIdleSecondsMax = 1;
constexpr long kConnectTimeoutMs = 5000;
// The longest Retry-After that is honoured.
constexpr Millis kRetryAfterMax{std::chrono::hours(24)};

constexpr std::string_view kNotPublic =
    "is not a public one; start the worker with --allow-private if it may be used";

constexpr std::string_view kNotBelieved =
    "; where it was signed by somebody whom the system does not know, start the worker with "
    "--webhook-ca-file";

constexpr std::array<long, 11> kPermanent{400, 405, 410, 411, 413, 414, 415, 422, 431, 451, 501};

template <auto kFree>
struct Freer {
  template <typename T>
  void operator()(T* handle) const {
    (Curl().*kFree)(handle);
  }
};

using Multi = std::unique_ptr<CURLM, Freer<&CurlLibrary::multi_cleanup>>;
using Easy = std::unique_ptr<CURL, Freer<&CurlLibrary::easy_cleanup>>;
using Headers = std::unique_ptr<curl_slist, Freer<&CurlLibrary::slist_free_all>>;

class HeaderList {
 public:
  void Add(const std::string& name, std::string_view value) {
    const std::string line = name + ": " + std::string(value);
    curl_slist* longer = Curl().slist_append(list_.get(), line.c_str());
    DELAYD_CHECK(longer != nullptr);
    static_cast<void>(list_.release());
    list_.reset(longer);
  }

  curl_slist* get() const { return list_.get(); }

 private:
  Headers list_;
};

// The same for all attempts, so that a receiver can recognize a repeated message. A replaced job
// keeps its id, and another store starts its ids anew; creation time and payload tell those apart.
std::string MessageId(const JobView& job, std::string_view payload) {
  const uint64_t message =
      Fingerprint(payload, Fingerprint(std::to_string(ToMillis(job.created)) + '\n'));
  return "job_" + std::to_string(ToInt(job.id)) + "_" + FormatFingerprint(message);
}

class WebhookRun final : public JobRun {
 public:
  WebhookRun(CURLM* multi, const WebhookOptions& options) : multi_(multi), options_(options) {}

  ~WebhookRun() override { Leave(); }

  WebhookRun(const WebhookRun&) = delete;
  WebhookRun& operator=(const WebhookRun&) = delete;

  Status Start(const JobView& job) {
    easy_.reset(Curl().easy_init());
    if (easy_ == nullptr) {
      return Unavailable("cannot make a webhook call: out of memory");
    }
    payload_ = job.payload.value_or("");
    MakeHeaders(job);
    SetOptions();
    if (const CURLMcode added = Curl().multi_add_handle(multi_, easy_.get()); added != CURLM_OK) {
      return Unavailable(std::string("cannot make a webhook call: ") +
                         Curl().multi_strerror(added));
    }
    in_multi_ = true;
    return OkStatus();
  }

  Event Wait(BootTime until, int wake_fd) override {
    const SystemClock clock;
    for (;;) {
      int running = 0;
      CURLMcode code = Curl().multi_perform(multi_, &running);
      if (code != CURLM_OK || TakeResult()) {
        result_ = code != CURLM_OK ? CURLE_FAILED_INIT : result_;
        Leave();
        return Event::kDone;
      }
      const BootTime now = clock.Sample().boot;
      if (now >= until) {
        return Event::kDeadline;
      }
      curl_waitfd wake{.fd = wake_fd, .events = CURL_WAIT_POLLIN, .revents = 0};
      const int64_t left =
          std::min<int64_t>((until - now).count(), std::numeric_limits<int>::max());
      code = Curl().multi_poll(
          multi_, &wake, wake_fd >= 0 ? 1 : 0, static_cast<int>(left), /*numfds=*/nullptr);
      if (code == CURLM_OK && wake.revents != 0) {
        return Event::kWoken;
      }
    }
  }

  // The receiver sees the connection close; there is nothing to wait for.
  void End(Millis /*grace*/) override { Leave(); }

  Verdict verdict() const override {
    // A host may have two addresses, one of which is refused while the other answers.
    if (!refused_.empty() && status_ == 0) {
      return {"nack",
              "the webhook's address " + refused_ + " " + std::string(kNotPublic),
              std::nullopt,
              opened_ || sent_on_kept_,  // otherwise no receiver has seen the call
              !opened_ && !sent_on_kept_};
    }
    if (status_ == 0 &&
        (result_ == CURLE_PEER_FAILED_VERIFICATION || result_ == CURLE_SSL_CACERT_BADFILE)) {
      return {"nack",
              "webhook: " + Why() + std::string(kNotBelieved),
              std::nullopt,
              sent_on_kept_,
              !sent_on_kept_};
    }
    // libcurl looks a name up in a thread of its own. That it could not be started has no error
    // code, only this text.
    if (status_ == 0 && Why().find("thread failed to start") != std::string::npos) {
      return {"nack",
              "webhook: " + Why() + "; " + std::string(kCureForProcesses),
              std::nullopt,
              sent_on_kept_};
    }
    // An answer that is too long still counts as an answer.
    if (result_ != CURLE_OK && !(result_ == CURLE_WRITE_ERROR && answer_full_)) {
      return OfBreak();
    }
    return OfStatus();
  }

 private:
  Verdict OfBreak() const {
    // A refusal stands even if its explanation was cut short.
    if (status_ >= 300) {
      return OfStatus();
    }
    return {"nack",
            status_ >= 200 ? "webhook answered " + std::to_string(status_) +
                                 ", but its answer broke off: " + Why()
                           : "webhook: " + Why()};
  }

  std::string Why() const {
    return result_ == CURLE_ABORTED_BY_CALLBACK ? "the kept connection was closed without an answer"
           : error_[0] != '\0'                  ? error_.data()
                                                : Curl().easy_strerror(result_);
  }

  Verdict OfStatus() const {
    if (status_ >= 200 && status_ < 300) {
      return {"ack", ""};
    }
    const std::string said = "webhook answered " + std::to_string(status_);
    if (status_ >= 300 && status_ < 400 && status_ != 304) {
      return {"nack", said + ": a redirect, which is not followed; give the worker the new URL"};
    }
    const std::string error = answer_.empty() ? said : said + ": " + answer_;
    if (std::find(kPermanent.begin(), kPermanent.end(), status_) != kPermanent.end()) {
      return {"bury", error};
    }
    Verdict verdict{"nack", error};
    if ((status_ == 429 || status_ == 503) && retry_after_seconds_ > 0) {
      verdict.delay =
          std::min<Millis>(kRetryAfterMax,
                           std::chrono::seconds(std::min<curl_off_t>(
                               retry_after_seconds_, std::numeric_limits<int32_t>::max())));
    }
    return verdict;
  }

  void MakeHeaders(const JobView& job) {
    const std::string id = MessageId(job, payload_);
    const int64_t now =
        std::chrono::floor<std::chrono::seconds>(SystemClock().Sample().wall.time_since_epoch())
            .count();
    headers_.Add("content-type", options_.content_type);
    headers_.Add("webhook-id", id);
    headers_.Add("webhook-timestamp", std::to_string(now));
    if (!options_.keys.empty()) {
      headers_.Add("webhook-signature", SignWebhook(options_.keys, id, now, payload_));
    }
    headers_.Add("delayd-queue", job.queue);
    if (!job.key.empty()) {
      headers_.Add("delayd-key", job.key);
      headers_.Add("delayd-key-encoded", protocol::PercentEncode(job.key));
    }
    headers_.Add("delayd-attempt", std::to_string(job.attempt));
    headers_.Add("delayd-max-attempts", std::to_string(job.max_attempts));
    headers_.Add("delayd-due", FormatUtc(job.due));
    headers_.Add("user-agent", "delayctl");
    // An empty value removes the header, so that curl does not wait for "100 Continue".
    headers_.Add("expect", "");
  }

  template <typename Value>
  void Set(CURLoption option, Value value) {
    const CURLcode set = Curl().easy_setopt(easy_.get(), option, value);
    DELAYD_CHECK(set == CURLE_OK);
  }

  void SetOptions() {
    Set(CURLOPT_URL, options_.url.c_str());
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    Set(CURLOPT_FOLLOWLOCATION, 0L);
    Set(CURLOPT_PROXY, "");
    if (!options_.ca_file.empty()) {
      // Replaces the system's store, which may be a file, a directory, or both.
      Set(CURLOPT_CAINFO, options_.ca_file.c_str());
      Set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
    }
    Set(CURLOPT_NOSIGNAL, 1L);
    // Do not let the end of a call wait for a hanging resolver while the lease runs out.
    Set(CURLOPT_QUICK_EXIT, 1L);
    Set(CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
    Set(CURLOPT_POST, 1L);
    Set(CURLOPT_POSTFIELDS, payload_.data());
    Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(payload_.size()));
    Set(CURLOPT_HTTPHEADER, headers_.get());
    Set(CURLOPT_ERRORBUFFER, error_.data());
    Set(CURLOPT_WRITEFUNCTION, &WebhookRun::OnAnswer);
    Set(CURLOPT_WRITEDATA, this);
    Set(CURLOPT_MAXAGE_CONN, kIdleSecondsMax);
    Set(CURLOPT_PREREQFUNCTION, &WebhookRun::OnSend);
    Set(CURLOPT_PREREQDATA, this);
    Set(CURLOPT_OPENSOCKETFUNCTION, &WebhookRun::OnOpen);
    Set(CURLOPT_OPENSOCKETDATA, this);
  }

  static size_t OnAnswer(char* bytes, size_t /*one*/, size_t size, void* self) {
    auto& run = *static_cast<WebhookRun*>(self);
    run.answer_.append(
        bytes, std::min(size, kAnswerBytesKept - std::min(kAnswerBytesKept, run.answer_.size())));
    run.answer_bytes_ += size;
    run.answer_full_ = run.answer_bytes_ > kAnswerBytesMax;
    return run.answer_full_ ? 0 : size;
  }

  // libcurl resends a request when a kept-alive connection closes before the answer. The receiver
  // may still be at work on the first, or have died of it: only the retry policy may send another.
  static int OnSend(void* self, char* /*to*/, char* /*from*/, int /*to_port*/, int /*from_port*/) {
    auto& run = *static_cast<WebhookRun*>(self);
    if (run.sent_on_kept_) {
      return CURL_PREREQFUNC_ABORT;
    }
    run.sent_on_kept_ = !run.opened_;
    return CURL_PREREQFUNC_OK;
  }

  static curl_socket_t OnOpen(void* self, curlsocktype /*purpose*/, curl_sockaddr* address) {
    auto& run = *static_cast<WebhookRun*>(self);
    if (!run.options_.allow_private && !run.options_.may_call(&address->addr)) {
      std::array<char, 64> text{};
      getnameinfo(
          &address->addr, address->addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
      run.refused_ = text.data();
      return CURL_SOCKET_BAD;
    }
    run.refused_.clear();
    run.opened_ = true;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  }

  bool TakeResult() {
    int left = 0;
    while (const CURLMsg* message = Curl().multi_info_read(multi_, &left)) {
      if (message->msg == CURLMSG_DONE && message->easy_handle == easy_.get()) {
        result_ = message->data.result;
        Curl().easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status_);
        ReadRetryAfter();
        return true;
      }
    }
    return false;
  }

  // Digits are seconds. Dates are left to curl, but it would also take 20200101 for a date.
  void ReadRetryAfter() {
    Curl().easy_getinfo(easy_.get(), CURLINFO_RETRY_AFTER, &retry_after_seconds_);
    curl_header* header = nullptr;
    if (Curl().easy_header(easy_.get(), "Retry-After", 0, CURLH_HEADER, -1, &header) != CURLHE_OK) {
      return;
    }
    const std::string_view value = header->value;
    if (value.empty() || value.find_first_not_of("0123456789") != std::string_view::npos) {
      return;
    }
    retry_after_seconds_ = std::numeric_limits<curl_off_t>::max();  // stays if the value overflows
    std::from_chars(value.data(), value.data() + value.size(), retry_after_seconds_);
  }

  void Leave() {
    if (in_multi_) {
      Curl().multi_remove_handle(multi_, easy_.get());
      in_multi_ = false;
    }
  }

  CURLM* const multi_;
  const WebhookOptions& options_;
  Easy easy_;
  bool in_multi_ = false;
  HeaderList headers_;
  std::string payload_;
  std::array<char, CURL_ERROR_SIZE> error_{};
  std::string refused_;  // the last refused address, unless another one was allowed
  bool opened_ = false;  // an address was allowed and opened
  bool sent_on_kept_ = false;
  std::string answer_;
  size_t answer_bytes_ = 0;
  bool answer_full_ = false;
  CURLcode result_ = CURLE_OK;
  long status_ = 0;
  curl_off_t retry_after_seconds_ = 0;
};

class Webhook final : public JobHandler {
 public:
  explicit Webhook(const WebhookOptions& options) : options_(options) {
    multi_.reset(Curl().multi_init());
    DELAYD_CHECK(multi_ != nullptr);
  }

  StatusOr<std::unique_ptr<JobRun>> Start(const JobView& job) override {
    auto run = std::make_unique<WebhookRun>(multi_.get(), options_);
    DELAYD_RETURN_IF_ERROR(run->Start(job));
    return std::unique_ptr<JobRun>(std::move(run));
  }

 private:
  const WebhookOptions options_;
  Multi multi_;  // owns the kept-alive connections
};

// One part of a URL; empty if it has none.
std::string UrlPart(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (Curl().url_get(url, part, &text, 0) != CURLUE_OK) {
    return "";
  }
  std::string copy(text);
  Curl().free(text);
  return copy;
}

// Whether a host is known not to be public without a resolver.
bool IsPrivateHost(std::string host) {
  std::ranges::transform(host, host.begin(), [](unsigned char c) { return std::tolower(c); });
  if (host.ends_with('.')) {
    host.pop_back();
  }
  if (host == "localhost" || host.ends_with(".localhost")) {
    return true;
  }
  sockaddr_in in{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}};
  if (inet_pton(AF_INET, host.c_str(), &in.sin_addr) == 1) {
    return !IsPublicAddress(reinterpret_cast<const sockaddr*>(&in));
  }
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  return host.starts_with('[') &&
         inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &in6.sin6_addr) == 1 &&
         !IsPublicAddress(reinterpret_cast<const sockaddr*>(&in6));
}

}  // namespace

Status CheckWebhookUrl(const std::string& url, bool allow_private) {
  DELAYD_RETURN_IF_ERROR(LoadCurl());
  const auto refuse = [&](const std::string& why) {
    return InvalidArgument("webhook URL " + protocol::Quoted(url) + " " + why, "usage");
  };
  const std::unique_ptr<CURLU, Freer<&CurlLibrary::url_cleanup>> parsed(Curl().url());
  DELAYD_CHECK(parsed != nullptr);
  if (const CURLUcode code = Curl().url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0);
      code != CURLUE_OK) {
    return refuse(std::string("cannot be read (") + Curl().url_strerror(code) +
                  "); write it like https://shop.example/hooks/cancel");
  }
  const std::string scheme = UrlPart(parsed.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") {
    return refuse("is neither http nor https; write it like https://shop.example/hooks/cancel");
  }
  if (!UrlPart(parsed.get(), CURLUPART_USER).empty() ||
      !UrlPart(parsed.get(), CURLUPART_PASSWORD).empty()) {
    return InvalidArgument(
        "the webhook URL holds a user or a password, which every user of this machine can read; "
        "sign the calls with --secret-file instead",
        "usage");
  }
  const std::string host = UrlPart(parsed.get(), CURLUPART_HOST);
  if (!allow_private && IsPrivateHost(host)) {
    return InvalidArgument(
        "the webhook's address " + protocol::Quoted(host) + " " + std::string(kNotPublic), "usage");
  }
  return OkStatus();
}

MakeJobHandler WebhookHandler(WebhookOptions options) {
  return [options = std::move(options)] { return std::make_unique<Webhook>(options); };
}

}  // namespace delayd::cli
