#include "protocol/beanstalk/command_reader.h"

#include <algorithm>

namespace delayd::beanstalk {
namespace {

constexpr std::string_view kCrlf = "\r\n";

size_t LineBytesMax(std::string_view begun) {
  return begun.starts_with("put-key ") ? kLongLineBytesMax : kLineBytesMax;
}

}  // namespace

void CommandReader::Append(std::string_view bytes) {
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  buffer_.append(bytes);
}

void CommandReader::Consume(size_t bytes) {
  begin_ += bytes;
  searched_ = 0;
}

std::optional<Command> CommandReader::Next() {
  std::optional<Command> command;
  switch (state_) {
    case State::kLine:
      command = NextLine();
      break;
    case State::kLongLine:
      command = SkipLine();
      break;
    case State::kBody:
      command = NextBody();
      break;
    case State::kSkippedBody:
      command = SkipBody();
      break;
  }
  if (!command) {
    Rest();
  }
  return command;
}

bool CommandReader::Rest() {
  if (begin_ < buffer_.size()) {
    return false;
  }
  buffer_.clear();
  begin_ = 0;
  if (buffer_.capacity() > kIdleBytesMax) {
    buffer_.shrink_to_fit();
  }
  return true;
}

std::optional<Command> CommandReader::NextLine() {
  const std::string_view input = unread();
  const size_t end = input.find(kCrlf, searched_);
  const size_t bytes_max = LineBytesMax(input);
  if (end == std::string_view::npos ? input.size() >= bytes_max : end + 2 > bytes_max) {
    RefuseLongLine(input.substr(0, bytes_max));
    return SkipLine();
  }
  if (end == std::string_view::npos) {
    searched_ = input.empty() ? 0 : input.size() - 1;  // its last byte may be a CR
    return std::nullopt;
  }
  Command command = ParseCommandLine(input.substr(0, end), job_bytes_max_);
  if (!command.has_body) {
    Consume(end + 2);
    return command;
  }
  line_bytes_ = end + 2;
  body_bytes_ = command.body_bytes;
  if (command.refusal != Refusal::kNone) {
    refused_ = command;
    skip_bytes_ = body_bytes_ + 2;
    Consume(line_bytes_);
    state_ = State::kSkippedBody;
    return SkipBody();
  }
  state_ = State::kBody;
  return BodyIsThere() ? std::optional<Command>(TakeBody(command)) : std::nullopt;
}

// In our own verbs the size of the body, and a space, precede the part that can be too long.
void CommandReader::RefuseLongLine(std::string_view begun) {
  const Command command = ParseCommandLine(begun.substr(0, begun.rfind(' ')), job_bytes_max_);
  skip_bytes_ = IsOurs(command.verb) && command.has_body ? command.body_bytes + 2 : 0;
  refused_ = {.refusal = Refusal::kBadFormat};
  state_ = State::kLongLine;
}

// Skips to the end of the line and over its body, keeping nothing.
std::optional<Command> CommandReader::SkipLine() {
  const std::string_view input = unread();
  const size_t end = input.find(kCrlf, searched_);
  if (end == std::string_view::npos) {
    const bool may_end = input.ends_with('\r');
    Consume(input.size() - (may_end ? 1 : 0));
    return std::nullopt;
  }
  Consume(end + 2);
  state_ = State::kSkippedBody;
  return SkipBody();
}

std::optional<Command> CommandReader::NextBody() {
  if (!BodyIsThere()) {
    return std::nullopt;
  }
  // Parsed again, because the buffer may have moved since.
  return TakeBody(ParseCommandLine(unread().substr(0, line_bytes_ - 2), job_bytes_max_));
}

bool CommandReader::BodyIsThere() const {
  return unread().size() >= line_bytes_ + body_bytes_ + 2;
}

Command CommandReader::TakeBody(Command command) {
  const std::string_view input = unread();
  command.body = input.substr(line_bytes_, body_bytes_);
  if (input.substr(line_bytes_ + body_bytes_, 2) != kCrlf) {
    command.refusal = Refusal::kExpectedCrlf;
  }
  Consume(line_bytes_ + body_bytes_ + 2);
  state_ = State::kLine;
  return command;
}

std::optional<Command> CommandReader::SkipBody() {
  const uint64_t skipped = std::min<uint64_t>(skip_bytes_, unread().size());
  Consume(static_cast<size_t>(skipped));
  skip_bytes_ -= skipped;
  if (skip_bytes_ > 0) {
    return std::nullopt;
  }
  state_ = State::kLine;
  refused_.name = {};
  return refused_;
}

}  // namespace delayd::beanstalk
