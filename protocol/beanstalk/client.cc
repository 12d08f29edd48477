#include "protocol/beanstalk/client.h"

#include <charconv>
#include <utility>

#include "base/clock.h"
#include "protocol/connection.h"

namespace delayd::beanstalk {
namespace {

// By then a healthy server has sent everything that was under way.
constexpr Millis kHurry{1000};

uint64_t NumberAt(std::string_view text, size_t at) {
  uint64_t number = 0;
  if (at < text.size()) {
    std::from_chars(text.data() + at, text.data() + text.size(), number);
  }
  return number;
}

bool HasBody(std::string_view line) {
  return line.starts_with("RESERVED ") || line.starts_with("FOUND ") || line.starts_with("OK ");
}

Status Gone(const std::string& address, const Status& why) {
  return Status(why.code(),
                "beanstalkd at " + address + " " +
                    (why.code() == StatusCode::kDeadlineExceeded ? "does not answer"
                                                                 : "is not there any more"),
                why.reason());
}

}  // namespace

std::string_view ServerReply::word() const {
  return std::string_view(line).substr(0, line.find(' '));
}

uint64_t ServerReply::number() const {
  const size_t space = line.find(' ');
  return space == std::string::npos ? 0 : NumberAt(line, space + 1);
}

std::string_view StatsField(std::string_view yaml, std::string_view key) {
  const std::string line = "\n" + std::string(key) + ": ";
  const size_t at = yaml.find(line);
  if (at == std::string_view::npos) {
    return {};
  }
  std::string_view value = yaml.substr(at + line.size());
  value = value.substr(0, value.find('\n'));
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
    value = value.substr(1, value.size() - 2);
  }
  return value;
}

uint64_t StatsNumber(std::string_view yaml, std::string_view key) {
  return NumberAt(StatsField(yaml, key), 0);
}

Client::Client(std::string address, Millis timeout)
    : address_(std::move(address)),
      timeout_(timeout),
      connection_(std::make_unique<protocol::Connection>()) {}

Client::~Client() = default;

StatusOr<std::unique_ptr<Client>> Client::Connect(std::string_view address, Millis timeout) {
  DELAYD_ASSIGN_OR_RETURN(const protocol::ServerAddress server,
                          protocol::ParseSocketAddress(address, "beanstalkd"));
  std::unique_ptr<Client> client(new Client(std::string(address), timeout));
  const SystemClock clock;
  const Status opened = client->connection_->Open(server, clock.Sample().boot + timeout);
  if (!opened.ok()) {
    return opened.code() == StatusCode::kDeadlineExceeded ? Gone(client->address_, opened) : opened;
  }
  return client;
}

void Client::Add(std::string_view command) {
  out_.append(command);
  out_.append("\r\n");
}

void Client::HurryWhen(int fd) {
  connection_->GiveUpWhen(fd, kHurry);
}

Status Client::Fill(BootTime deadline) {
  constexpr size_t kReadBytes = size_t{64} << 10;
  if (read_ > 0) {
    in_.erase(0, read_);
    read_ = 0;
  }
  const size_t size = in_.size();
  in_.resize(size + kReadBytes);
  const StatusOr<size_t> got = connection_->Receive(in_.data() + size, kReadBytes, deadline);
  in_.resize(size + (got.ok() ? *got : 0));
  if (!got.ok()) {
    return Gone(address_, got.status());
  }
  return *got > 0 ? OkStatus() : Gone(address_, Unavailable("", "connection_lost"));
}

StatusOr<ServerReply> Client::Read() {
  const SystemClock clock;
  const BootTime deadline = clock.Sample().boot + timeout_;
  if (!out_.empty()) {
    size_t sent = 0;
    const Status status = connection_->Send(std::exchange(out_, std::string()), deadline, &sent);
    if (!status.ok()) {
      return Gone(address_, status);
    }
  }
  for (;;) {
    const std::string_view input = std::string_view(in_).substr(read_);
    const size_t end = input.find("\r\n");
    if (end != std::string_view::npos) {
      ServerReply reply{.line = std::string(input.substr(0, end))};
      const size_t body =
          HasBody(reply.line) ? NumberAt(reply.line, reply.line.rfind(' ') + 1) + 2 : 0;
      if (input.size() >= end + 2 + body) {
        reply.body = body == 0 ? std::string() : input.substr(end + 2, body - 2);
        read_ += end + 2 + body;
        return reply;
      }
    }
    DELAYD_RETURN_IF_ERROR(Fill(deadline));
  }
}

StatusOr<ServerReply> Client::Call(std::string_view command) {
  Add(command);
  return Read();
}

}  // namespace delayd::beanstalk
