#include "cli/webhook_handler.h"

#include <dlfcn.h>
#include <netdb.h>
#include <unistd.h>

#include <array>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "cli/webhook_signature.h"
#include "tests/support/http_receiver.h"
#include "tests/support/no_threads.h"
#include "tests/unit/cli/fake_daemon.h"

#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

namespace {

// What keeps hangs.test from being resolved.
std::shared_future<void> resolver_hangs_until;

}  // namespace

// Stands before that of libc, for libcurl too.
extern "C" int getaddrinfo(const char* name,
                           const char* service,
                           const addrinfo* hints,
                           addrinfo** found) {
  if (name != nullptr && std::string_view(name) == "hangs.test") {
    const std::shared_future<void> until = resolver_hangs_until;
    until.wait();
    return EAI_AGAIN;
  }
  static const auto real =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(name, service, hints, found);
}

namespace delayd::cli {
namespace {

using delayd::test::HttpAnswer;
using delayd::test::HttpReceiver;
using delayd::test::ReceivedRequest;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

JobView LeasedJob(uint64_t id, const std::string& payload) {
  JobView job = SomeJob(id);
  job.queue = "orders";
  job.key = "order:1001";
  job.attempt = 2;
  job.payload = payload;
  return job;
}

WebhookOptions Local(const HttpReceiver& receiver) {
  WebhookOptions options;
  options.url = receiver.url();
  options.allow_private = true;
  return options;
}

Verdict Handle(JobHandler* handler, const JobView& job) {
  auto run = handler->Start(job);
  EXPECT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ((*run)->Wait(BootTime::max(), -1), JobRun::Event::kDone);
  return (*run)->verdict();
}

Verdict Handle(const WebhookOptions& options) {
  return Handle(WebhookHandler(options)().get(), LeasedJob(7, "x"));
}

TEST(WebhookHandlerTest, PostsThePayloadAsItIsWithTheJobInHeaders) {
  const std::string payload("{\"order\":\0 1001}", 16);
  HttpReceiver receiver([](const ReceivedRequest&) { return HttpAnswer(204); });
  const Verdict verdict = Handle(WebhookHandler(Local(receiver))().get(), LeasedJob(7, payload));
  EXPECT_EQ(verdict.action, "ack");
  ASSERT_THAT(receiver.requests(), SizeIs(1));
  ReceivedRequest request = receiver.requests().front();
  EXPECT_EQ(request.line, "POST /hook HTTP/1.1");
  EXPECT_EQ(request.body, payload);
  EXPECT_EQ(request.headers["content-type"], "application/json");
  EXPECT_THAT(request.headers["webhook-id"], MatchesRegex("job_7_[0-9a-f]{16}"));
  EXPECT_EQ(request.headers["delayd-queue"], "orders");
  EXPECT_EQ(request.headers["delayd-due"], "2027-01-01T09:30:00.000Z");
  EXPECT_EQ(request.headers["delayd-key"], "order:1001");
  EXPECT_EQ(request.headers["delayd-attempt"], "2");
  EXPECT_EQ(request.headers["delayd-max-attempts"], "25");
  EXPECT_EQ(request.headers.count("webhook-signature"), 0U);
  EXPECT_EQ(request.headers.count("expect"), 0U);
}

// A header's value loses blanks at its ends, and not all read it as UTF-8.
TEST(WebhookHandlerTest, TheKeyIsTherePercentEncodedToo) {
  HttpReceiver receiver([](const ReceivedRequest&) { return HttpAnswer(204); });
  JobView job = LeasedJob(7, "x");
  const auto handler = WebhookHandler(Local(receiver))();
  Handle(handler.get(), job);
  EXPECT_EQ(receiver.requests().back().headers["delayd-key-encoded"], "order%3A1001");
  job.key = " 5% für ";
  Handle(handler.get(), job);
  EXPECT_EQ(receiver.requests().back().headers["delayd-key-encoded"], "%205%25%20f%C3%BCr%20");
}

TEST(WebhookHandlerTest, SignsIdTimeAndBody) {
  HttpReceiver receiver([](const ReceivedRequest&) { return HttpAnswer(200); });
  WebhookOptions options = Local(receiver);
  options.keys = {std::string(32, 'k')};
  Handle(options);
  ReceivedRequest request = receiver.requests().front();
  const int64_t at = std::stoll(request.headers["webhook-timestamp"]);
  EXPECT_EQ(request.headers["webhook-signature"],
            SignWebhook(options.keys, request.headers["webhook-id"], at, request.body));
}

TEST(WebhookHandlerTest, AMessageKeepsItsIdOverAllAttemptsAndSharesItWithNoOther) {
  HttpReceiver receiver([](const ReceivedRequest&) { return HttpAnswer(204); });
  const auto id_of = [&](const JobView& job) {
    Handle(WebhookHandler(Local(receiver))().get(), job);
    return receiver.requests().back().headers.at("webhook-id");
  };
  JobView job = LeasedJob(7, "cancel 1001");
  const std::string id = id_of(job);
  EXPECT_EQ(id, "job_7_0cf4a8795b3ef58a");  // receivers keep it: it must not change with a release
  job.attempt = 3;
  job.due += Millis(60'000);
  EXPECT_EQ(id_of(job), id);
  JobView replaced = job;
  replaced.payload = "cancel 1002";
  EXPECT_NE(id_of(replaced), id);
  JobView of_another_store = job;
  of_another_store.created += Millis(1);
  EXPECT_NE(id_of(of_another_store), id);
}

TEST(WebhookHandlerTest, TheStatusDecides) {
  int status = 0;
  HttpReceiver receiver(
      [&](const ReceivedRequest&) { return HttpAnswer(status, "", "no such order"); });
  for (const int ack : {200, 201, 202, 204, 299}) {
    status = ack;
    EXPECT_EQ(Handle(Local(receiver)).action, "ack") << ack;
  }
  for (const int bury : {400, 410, 413, 422, 501}) {
    status = bury;
    const Verdict verdict = Handle(Local(receiver));
    EXPECT_EQ(verdict.action, "bury") << bury;
    EXPECT_EQ(verdict.error, "webhook answered " + std::to_string(bury) + ": no such order");
  }
  for (const int nack : {401, 403, 404, 408, 409, 429, 500, 502, 503}) {
    status = nack;
    const Verdict verdict = Handle(Local(receiver));
    EXPECT_EQ(verdict.action, "nack") << nack;
    EXPECT_EQ(verdict.delay, std::nullopt) << nack;
  }
}

TEST(WebhookHandlerTest, RetryAfterSetsTheDelay) {
  for (const int status : {429, 503}) {
    HttpReceiver receiver(
        [&](const ReceivedRequest&) { return HttpAnswer(status, "retry-after: 90\r\n"); });
    const Verdict verdict = Handle(Local(receiver));
    EXPECT_EQ(verdict.action, "nack");
    EXPECT_EQ(verdict.delay, Millis(90'000));
  }
  std::string value;
  HttpReceiver busy(
      [&](const ReceivedRequest&) { return HttpAnswer(503, "retry-after: " + value + "\r\n"); });
  // Too much is cut, and eight digits are seconds, not a day; a date of the past is no delay.
  for (const char* too_long : {"999999999999", "99999999999999999999", "20200101"}) {
    value = too_long;
    EXPECT_EQ(Handle(Local(busy)).delay, Millis(std::chrono::hours(24))) << value;
  }
  for (const char* none : {"0", "-20", "soon", "Wed, 01 Jan 2020 00:00:00 GMT"}) {
    value = none;
    EXPECT_EQ(Handle(Local(busy)).delay, std::nullopt) << value;
  }
}

TEST(WebhookHandlerTest, RedirectsAreNotFollowed) {
  HttpReceiver receiver([](const ReceivedRequest& request) {
    return request.line == "POST /hook HTTP/1.1" ? HttpAnswer(302, "location: /other\r\n")
                                                 : HttpAnswer(200);
  });
  const Verdict verdict = Handle(Local(receiver));
  EXPECT_EQ(verdict.action, "nack");
  EXPECT_THAT(verdict.error, HasSubstr("redirect"));
  EXPECT_THAT(receiver.requests(), SizeIs(1));
}

TEST(WebhookHandlerTest, AnAnswerThatNothingWasModifiedIsNoRedirect) {
  HttpReceiver receiver([](const ReceivedRequest&) { return HttpAnswer(304); });
  EXPECT_EQ(Handle(Local(receiver)).error, "webhook answered 304");
}

TEST(WebhookHandlerTest, PrivateAddressesAreRefusedUnlessAllowed) {
  HttpReceiver receiver([](const ReceivedRequest&) { return HttpAnswer(200); });
  WebhookOptions options = Local(receiver);
  options.allow_private = false;
  const Verdict verdict = Handle(options);
  EXPECT_EQ(verdict.action, "nack");
  EXPECT_THAT(verdict.error, HasSubstr("127.0.0.1 is not a public one"));
  EXPECT_THAT(verdict.error, HasSubstr("--allow-private"));
  EXPECT_FALSE(verdict.counts_as_attempt);  // the worker's mistake, which the receiver never saw
  EXPECT_THAT(receiver.requests(), IsEmpty());
}

TEST(WebhookHandlerTest, ANameThatPointsInsideIsRefused) {
  HttpReceiver receiver([](const ReceivedRequest&) { return HttpAnswer(200); });
  WebhookOptions options = Local(receiver);
  options.allow_private = false;
  options.url.replace(options.url.find("127.0.0.1"), 9, "localhost");
  EXPECT_EQ(Handle(options).action, "nack");
  EXPECT_THAT(receiver.requests(), IsEmpty());
}

TEST(WebhookHandlerTest, WithoutAThreadToLookANameUpNoAttemptIsUsed) {
  WebhookOptions options;
  options.url = "http://shop.invalid/hook";
  const test::NoThreads refused;
  const Verdict verdict = Handle(options);
  EXPECT_EQ(verdict.action, "nack");
  EXPECT_THAT(verdict.error, HasSubstr("thread failed to start; allow more processes"));
  EXPECT_FALSE(verdict.counts_as_attempt);
  EXPECT_FALSE(verdict.for_good);
}

TEST(WebhookHandlerTest, AnAnswerWithoutEndIsCutAndStillCounts) {
  HttpReceiver receiver([](const ReceivedRequest&) {
    return "HTTP/1.1 200 X\r\ncontent-length: 10000000\r\n\r\n" + std::string(100'000, 'a');
  });
  EXPECT_EQ(Handle(Local(receiver)).action, "ack");
}

TEST(WebhookHandlerTest, AConnectionThatBreaksIsAFailedAttempt) {
  HttpReceiver receiver([](const ReceivedRequest&) { return ""; });
  const Verdict verdict = Handle(Local(receiver));
  EXPECT_EQ(verdict.action, "nack");
  EXPECT_THAT(verdict.error, HasSubstr("webhook: "));
}

TEST(WebhookHandlerTest, AStatusCountsThoughTheAnswerBreaksOff) {
  std::string head;
  HttpReceiver receiver([&](const ReceivedRequest&) {
    return "HTTP/1.1 " + head + "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\nno chunk\r\n";
  });
  head = "410 X\r\n";
  EXPECT_EQ(Handle(Local(receiver)).action, "bury");
  head = "503 X\r\nretry-after: 90\r\n";
  const Verdict busy = Handle(Local(receiver));
  EXPECT_EQ(busy.error, "webhook answered 503: abc");
  EXPECT_EQ(busy.delay, Millis(90'000));
  // A receiver that breaks off while it tells of its success may not have finished.
  head = "200 X\r\n";
  const Verdict broken = Handle(Local(receiver));
  EXPECT_EQ(broken.action, "nack");
  EXPECT_THAT(broken.error, HasSubstr("webhook answered 200, but its answer broke off: "));
}

TEST(WebhookHandlerTest, TheConnectionIsKeptForTheNextJob) {
  HttpReceiver receiver([](const ReceivedRequest&) { return HttpAnswer(200); });
  const auto handler = WebhookHandler(Local(receiver))();
  Handle(handler.get(), LeasedJob(1, "x"));
  Handle(handler.get(), LeasedJob(2, "x"));
  ASSERT_THAT(receiver.requests(), SizeIs(2));
  EXPECT_EQ(receiver.requests()[1].connection, 1);
}

// By itself, libcurl sends it again on a new connection.
TEST(WebhookHandlerTest, AReceiverThatDiesOnAKeptConnectionIsNotCalledAgain) {
  HttpReceiver receiver([](const ReceivedRequest& request) {
    return request.body == "fatal" ? "" : HttpAnswer(200);
  });
  const auto handler = WebhookHandler(Local(receiver))();
  Handle(handler.get(), LeasedJob(1, "x"));
  const Verdict verdict = Handle(handler.get(), LeasedJob(2, "fatal"));
  EXPECT_EQ(verdict.action, "nack");
  EXPECT_EQ(verdict.error, "webhook: the kept connection was closed without an answer");
  ASSERT_THAT(receiver.requests(), SizeIs(2));
  EXPECT_EQ(receiver.requests()[1].connection, 1);
  EXPECT_EQ(Handle(handler.get(), LeasedJob(3, "x")).action, "ack");
}

TEST(WebhookHandlerTest, WaitingEndsAtTheDeadlineAndWhenWoken) {
  // Answers when the test has seen both.
  const int gate = eventfd(0, EFD_CLOEXEC);
  HttpReceiver receiver([&](const ReceivedRequest&) {
    uint64_t count = 0;
    EXPECT_EQ(read(gate, &count, sizeof count), static_cast<ssize_t>(sizeof count));
    return HttpAnswer(200);
  });
  const auto handler = WebhookHandler(Local(receiver))();
  auto run = handler->Start(LeasedJob(1, "x"));
  ASSERT_TRUE(run.ok());
  EXPECT_EQ((*run)->Wait(SystemClock().Sample().boot, -1), JobRun::Event::kDeadline);
  const int wake = eventfd(1, EFD_CLOEXEC);
  EXPECT_EQ((*run)->Wait(BootTime::max(), wake), JobRun::Event::kWoken);
  const uint64_t one = 1;
  EXPECT_EQ(write(gate, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  EXPECT_EQ((*run)->Wait(BootTime::max(), -1), JobRun::Event::kDone);
  EXPECT_EQ((*run)->verdict().action, "ack");
  close(wake);
  close(gate);
}

TEST(WebhookHandlerTest, ACallThatIsEndedDoesNotWaitForItsHostsName) {
  std::promise<void> answer;
  resolver_hangs_until = answer.get_future().share();
  std::promise<void> ended;
  // Else it would be a test that hangs.
  std::thread late([&] {
    EXPECT_EQ(ended.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
    answer.set_value();
  });
  WebhookOptions options;
  options.url = "http://hangs.test/";
  const auto handler = WebhookHandler(options)();
  auto run = handler->Start(LeasedJob(1, "x"));
  ASSERT_TRUE(run.ok());
  EXPECT_EQ((*run)->Wait(SystemClock().Sample().boot + Millis(50), -1), JobRun::Event::kDeadline);
  (*run)->End(Millis(0));
  ended.set_value();
  late.join();
}

TEST(WebhookHandlerTest, UrlsAreCheckedBeforeAnyJobIsTaken) {
  const auto check = [](const std::string& url) { return CheckWebhookUrl(url, false); };
  EXPECT_TRUE(check("https://shop.example/hooks/cancel").ok());
  EXPECT_FALSE(check("shop.example/hooks").ok());
  EXPECT_FALSE(check("").ok());
  EXPECT_FALSE(check("https://").ok());
  EXPECT_THAT(check("file:///etc/passwd").message(),
              HasSubstr("neither http nor https; write it like https://"));
  const std::string with_password(check("https://me:hunter2@shop.example/").message());
  EXPECT_THAT(with_password, HasSubstr("--secret-file"));
  EXPECT_THAT(with_password, ::testing::Not(HasSubstr("hunter2")));
}

TEST(WebhookHandlerTest, AUrlThatPointsInsideByItselfIsRefusedBeforeAnyJobIsTaken) {
  for (const char* host : {"127.0.0.1:8080",
                           "127.1",
                           "10.0.0.7",
                           "169.254.169.254",
                           "[::1]:8080",
                           "[fd00::7]",
                           "[::ffff:10.0.0.7]",
                           "LocalHost:8080",
                           "localhost.",
                           "app.localhost"}) {
    const std::string url = std::string("http://") + host + "/hook";
    const Status refused = CheckWebhookUrl(url, false);
    EXPECT_EQ(refused.reason(), "usage") << url;
    EXPECT_THAT(refused.message(), HasSubstr("start the worker with --allow-private")) << url;
    EXPECT_TRUE(CheckWebhookUrl(url, true).ok()) << url;
  }
  for (const char* url :
       {"http://93.184.216.34/", "http://[2606:2800:220:1::1]/", "http://local/"}) {
    EXPECT_TRUE(CheckWebhookUrl(url, false).ok()) << url;
  }
}

// On 127.0.0.1, and full: the next connection is made a second after Admit, when its SYN is sent
// again.
class SlowReceiver {
 public:
  SlowReceiver() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_, generic, size), 0);
    EXPECT_EQ(listen(listener_, 0), 0);
    EXPECT_EQ(getsockname(listener_, generic, &size), 0);
    port_ = ntohs(address.sin_port);
    for (int& fd : fill_) {
      fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      static_cast<void>(connect(fd, generic, size));
    }
  }

  ~SlowReceiver() {
    for (const int fd : fill_) {
      close(fd);
    }
    shutdown(listener_, SHUT_RDWR);
    if (thread_.joinable()) {
      thread_.join();
    }
    close(listener_);
  }

  SlowReceiver(const SlowReceiver&) = delete;
  SlowReceiver& operator=(const SlowReceiver&) = delete;

  int port() const { return port_; }

  void Admit() {
    for (const int fd : fill_) {
      shutdown(fd, SHUT_RDWR);
    }
    thread_ = std::thread([this] {
      for (int fd = accept(listener_, nullptr, nullptr); fd >= 0;
           fd = accept(listener_, nullptr, nullptr)) {
        char request[4096];
        if (read(fd, request, sizeof request) > 0) {
          constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
          static_cast<void>(!write(fd, kAnswer.data(), kAnswer.size()));
        }
        close(fd);
      }
    });
  }

 private:
  int listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::array<int, 3> fill_{-1, -1, -1};
  int port_ = 0;
  std::thread thread_;
};

TEST(WebhookHandlerTest, AnAnswerCountsThoughAnotherAddressOfItsHostWasRefused) {
  SlowReceiver receiver;
  bool refused = false;
  WebhookOptions options;
  // Both addresses, and the second is tried because the first is slow.
  options.url = "http://localhost:" + std::to_string(receiver.port()) + "/";
  options.may_call = [&](const sockaddr* address) {
    if (address->sa_family == AF_INET6 && !refused) {
      refused = true;
      receiver.Admit();
    }
    return address->sa_family == AF_INET;
  };
  const Verdict verdict = Handle(options);
  if (!refused) {
    GTEST_SKIP() << "localhost has one address here";
  }
  EXPECT_EQ(verdict.action, "ack") << verdict.error;
}

}  // namespace
}  // namespace delayd::cli
