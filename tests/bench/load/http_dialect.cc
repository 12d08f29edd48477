// delayd's HTTP API over kept connections: NDJSON for a window of new jobs, one request for a
// window of leases or acks; cancels have one job each and are pipelined.
#include <charconv>

#include "tests/bench/load/dialect.h"

namespace delayd::load {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";

void AppendRequest(std::string_view method,
                   std::string_view path,
                   std::string_view type,
                   std::string_view body,
                   std::string* out) {
  *out += method;
  *out += " ";
  *out += path;
  *out += " HTTP/1.1\r\nHost: localhost\r\n";
  if (!body.empty()) {
    *out += "Content-Type: ";
    *out += type;
    *out += "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  } else if (method == "POST") {
    *out += "Content-Length: 0\r\n";
  }
  *out += "\r\n";
  *out += body;
}

uint64_t NumberAfter(std::string_view text, std::string_view name, size_t from) {
  const size_t at = text.find(name, from);
  if (at == std::string_view::npos) {
    Fail("the server's answer has no " + std::string(name) + ": " + std::string(text));
  }
  uint64_t number = 0;
  std::from_chars(text.data() + at + name.size(), text.data() + text.size(), number);
  return number;
}

// The bodies of this tool have nothing that JSON escapes.
std::string_view StringAfter(std::string_view text, std::string_view name, size_t from) {
  const size_t at = text.find(name, from);
  if (at == std::string_view::npos) {
    Fail("the server's answer has no " + std::string(name));
  }
  const size_t begin = at + name.size();
  return text.substr(begin, text.find('"', begin) - begin);
}

class HttpDialect : public Dialect {
 public:
  size_t JobsEach(Verb, size_t window) const override { return window; }

  bool CanWait() const override { return true; }

  void Put(std::span<const NewJob> jobs, std::string* out) override {
    body_.clear();
    for (const NewJob& job : jobs) {
      body_ += R"({"delay":")" + std::to_string(job.delay_ms) + R"(ms",)";
      if (job.queue >= 0) {
        body_ += R"("queue":"tube-)" + std::to_string(job.queue) + R"(",)";
      }
      body_ += R"("payload":")";
      body_ += job.body;
      body_ += jobs.size() > 1 ? "\"}\n" : "\"}";
    }
    AppendRequest("POST",
                  "/v1/jobs",
                  jobs.size() > 1 ? "application/x-ndjson" : "application/json",
                  body_,
                  out);
  }

  void Lease(size_t count, bool wait, std::string* out) override {
    AppendRequest("POST",
                  "/v1/queues/default/lease",
                  "application/json",
                  R"({"count":)" + std::to_string(count) + (wait ? R"(,"wait":"20s"})" : "}"),
                  out);
  }

  void Ack(std::span<const std::string_view> tokens, std::string* out) override {
    if (tokens.size() == 1) {
      body_ = "/v1/leases/";
      body_ += tokens.front();
      body_ += "/ack";
      AppendRequest("POST", body_, "", "", out);
      return;
    }
    body_ = R"({"tokens":[)";
    for (const std::string_view token : tokens) {
      body_ += '"';
      body_ += token;
      body_ += "\",";
    }
    body_.back() = ']';
    body_ += '}';
    AppendRequest("POST", "/v1/leases:ack", "application/json", body_, out);
  }

  void Cancel(std::span<const uint64_t> ids, std::string* out) override {
    if (ids.size() == 1) {
      AppendRequest("DELETE", "/v1/jobs/" + std::to_string(ids.front()), "", "", out);
      return;
    }
    body_ = R"({"ids":[)";
    for (const uint64_t id : ids) {
      body_ += std::to_string(id);
      body_ += ',';
    }
    body_.back() = ']';
    body_ += '}';
    AppendRequest("POST", "/v1/jobs:cancel-by-id", "application/json", body_, out);
  }

  size_t Read(std::string_view input, Answer* answer) override {
    const size_t head = input.find(kHeadEnd);
    if (head == std::string_view::npos) {
      return 0;
    }
    const size_t begin = head + kHeadEnd.size();
    const size_t size = NumberAfter(input.substr(0, begin), "Content-Length: ", 0);
    if (input.size() < begin + size) {
      return 0;
    }
    const std::string_view body = input.substr(begin, size);
    if (!input.starts_with("HTTP/1.1 20")) {
      Fail("the server answered: " + std::string(input.substr(0, begin + size)));
    }
    if (answer->verb == Verb::kPut) {
      constexpr std::string_view kId = "\"id\":";
      for (size_t at = 0; (at = body.find(kId, at)) != std::string_view::npos; at += kId.size()) {
        answer->ids.push_back(NumberAfter(body, kId, at));
      }
    } else if (answer->verb == Verb::kLease) {
      TakeJobs(body, answer);
    } else if (answer->verb == Verb::kAck && body.find("\"lost\":[\"") != std::string_view::npos) {
      Fail("leases were lost: " + std::string(body));
    }
    return begin + size;
  }

 private:
  static void TakeJobs(std::string_view body, Answer* answer) {
    constexpr std::string_view kPayload = "\"payload\":\"";
    for (size_t at = 0; (at = body.find(kPayload, at)) != std::string_view::npos;
         at += kPayload.size()) {
      answer->jobs.push_back({.token = StringAfter(body, "\"lease_token\":\"", at),
                              .body = StringAfter(body, kPayload, at)});
    }
  }

  std::string body_;
};

}  // namespace

std::unique_ptr<Dialect> MakeHttp() {
  return std::make_unique<HttpDialect>();
}

}  // namespace delayd::load
