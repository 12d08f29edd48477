// The whole way of a request without sockets: bytes, session, router, engine, store and back. The
// first byte says how the rest is cut. However a connection's bytes arrive, the answers are the
// same; they are answers to our own client, one for each request, and their bodies are JSON.
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/limits.h"
#include "daemon/engine/engine.h"
#include "daemon/http/http_session.h"
#include "protocol/http_reader.h"
#include "protocol/json_reader.h"
#include "storage/memory_job_store.h"
#include "tests/fuzz/require.h"
#include "tests/support/plain_report.h"

namespace {

using namespace delayd;
using fuzz::Require;

// Small enough that a fuzzer reaches every one of them.
const http::RouterOptions kRouterOptions{
    .payload_bytes_max = 1500, .body_bytes_max = 3000, .service = &test::kPlainReport};
const http::ReaderOptions kReaderOptions{.line_bytes_max = 200,
                                         .head_bytes_max = 600,
                                         .fields_max = 8,
                                         .body_bytes_max = [](auto, auto) { return size_t{3000}; }};
constexpr uint64_t kBootId = 77;
constexpr const char* kEnd = "\r\n\r\n";
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// One connection to an engine of its own. With `a_turn_each` every request is executed, made
// durable and answered before the next is looked at, so that nothing hangs on how they arrive.
class Life {
 public:
  explicit Life(bool a_turn_each)
      : a_turn_each_(a_turn_each), router_(kRouterOptions), session_(kReaderOptions, router_) {
    auto loaded = engine::Engine::Load(options(), store_, clock_.Sample());
    Require(loaded.ok(), "an empty store opens");
    engine_ = std::move(loaded).value();
    Turn();
  }

  void Receive(std::string_view bytes) {
    session_.Receive(bytes);
    TakeRequests();
  }

  // The client has said all it had to say: every wait ends, and everything is answered.
  std::string End() {
    Turn();
    TakeRequests();
    session_.Stop();
    clock_.Advance(Millis(limits::kLeaseWaitMsMax + 1));
    Turn();
    Require(session_.finished() && under_way_.empty(), "every request is answered");
    Require(engine_->fatal().ok(), engine_->fatal().message());
    Require(engine::Engine::Load(options(), store_, clock_.Sample()).ok(), "what is stored opens");
    return std::move(output_);
  }

 private:
  static engine::EngineOptions options() {
    return {.boot_id = kBootId,
            .payload_bytes_max = kRouterOptions.payload_bytes_max,
            .memory_jobs_max = 64};
  }

  void TakeRequests() {
    for (bool more = true; more;) {
      more = false;
      while (std::optional<SessionRequest> request = session_.Next(clock_.Sample())) {
        under_way_.emplace(next_request_, request->tag);
        engine_->Execute(next_request_++, std::move(request->command), clock_.Sample());
        if (a_turn_each_) {
          Turn();
        }
      }
      Send();
      more = session_.has_more();  // it let others have their turn
      if (!session_.wants_input()) {
        Turn();
        more = session_.wants_input();  // or a lease request in front waits
      }
    }
  }

  void Turn() {
    while (engine_->Advance(clock_.Sample())) {
    }
    do {
      Deliver();
    } while (Commit());
    Send();
  }

  bool Commit() {
    const auto sealed = engine_->Seal(clock_.Sample());
    if (!sealed) {
      return false;
    }
    Require(store_.Commit(*sealed->batch).ok(), "the store takes a batch");
    engine_->Committed(sealed->sequence);
    return true;
  }

  void Deliver() {
    for (const engine::Reply& reply : engine_->TakeReplies()) {
      const auto found = under_way_.find(reply.request);
      Require(found != under_way_.end(), "an answer has its request, and is the only one");
      session_.Answer(found->second, reply);
      under_way_.erase(found);
    }
  }

  void Send() {
    output_.append(session_.output());
    session_.Sent(session_.output().size());
  }

  const bool a_turn_each_;
  SimulatedClock clock_{
      Now{.wall = WallFromMillis(1'800'000'000'000), .boot = BootFromMillis(5'000'000)}};
  storage::MemoryJobStore store_;
  std::unique_ptr<engine::Engine> engine_;
  http::Router router_;
  http::HttpSession session_;
  std::unordered_map<engine::RequestId, uint64_t> under_way_;
  engine::RequestId next_request_ = 1;
  std::string output_;
};

// Cut by a generator of one byte of state: pieces of 1 to 37 bytes, or of one.
std::string InPieces(std::string_view bytes, uint8_t cut, bool a_turn_each) {
  Life life(a_turn_each);
  uint32_t state = cut;
  while (!bytes.empty()) {
    state = state * 1664525 + 1013904223;
    const size_t piece = cut == 0 ? 1 : 1 + (state >> 16) % 37;
    life.Receive(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  return life.End();
}

// A client that is asked for its body hears so only if it has not sent it: that hangs on the cut.
std::string WithoutContinue(std::string text) {
  for (size_t at = text.find(kContinue); at != std::string::npos; at = text.find(kContinue, at)) {
    text.erase(at, kContinue.size());
  }
  return text;
}

void RequireJson(std::string_view body) {
  const auto any = [](std::string_view, const protocol::JsonValue&) { return OkStatus(); };
  while (!body.empty()) {
    const std::string_view line = body.substr(0, body.find('\n'));
    Require(protocol::ReadJsonObject(line, any).ok(), line);
    body.remove_prefix(std::min(line.size() + 1, body.size()));
  }
}

// `answers` may end with the head of an answer to HEAD, which looks cut off.
void RequireReadable(std::string_view answers) {
  while (!answers.empty()) {
    // The length is ours to find: the reader below takes one answer and nothing behind it.
    const size_t head_end = answers.find("\r\n\r\n");
    const size_t length_at = answers.find("Content-Length: ");
    Require(head_end != std::string_view::npos && length_at < head_end, answers);
    const size_t body_bytes = std::strtoul(answers.data() + length_at + 16, nullptr, 10);
    const std::string_view answer = answers.substr(0, head_end + 4 + body_bytes);
    protocol::HttpReader reader;
    Require(reader.Feed(answer).ok() && reader.done(), answer);
    const bool goes_on = reader.keep_alive();
    const protocol::HttpResponse response = reader.Take();
    RequireJson(response.body);
    answers.remove_prefix(answer.size());
    Require(goes_on || answers.empty(), "nothing follows the last answer");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const uint8_t cut = data[0];
  // Beast refuses half a head as soon as it sees why when it comes in one piece, and when it is
  // whole when it comes in several: so it is made whole.
  const std::string bytes = std::string(reinterpret_cast<const char*>(data) + 1, size - 1) + kEnd;
  Life whole(true);
  whole.Receive(bytes);
  const std::string answers = WithoutContinue(whole.End());
  const std::string pieces = WithoutContinue(InPieces(bytes, cut, true));
  if (answers != pieces) {
    std::fprintf(stderr, "whole:\n%s\npieces:\n%s\n", answers.c_str(), pieces.c_str());
  }
  Require(answers == pieces, "the answers do not hang on how the bytes arrive");
  if (bytes.find("HEAD") == std::string::npos) {
    RequireReadable(answers);
  }
  // Answers in one go, out of order, once everything is durable.
  if (cut % 2 == 1) {
    (void)InPieces(bytes, cut, false);
  }
  return 0;
}
