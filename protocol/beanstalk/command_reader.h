// protocol/beanstalk/command_reader.h — reads commands from a stream of bytes, however it is split.
//
// What:    Append takes what has arrived, Next gives one command at a time, each with its body. A
//          line that is too long, or the body of a refused command, is skipped as it arrives and
//          never kept.
// Errors:  a refusal in the command that is wrong; the commands after it are read as usual.
// Threads: one.
// Cost:    each byte is copied once; no allocation once the buffer has grown. Holds what was
//          appended and not yet read: at most one Append plus one line or body, provided Next is
//          called until it gives none.
// Source:  docs/protocol.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/beanstalk/command.h"

namespace delayd::beanstalk {

class CommandReader {
 public:
  explicit CommandReader(size_t job_bytes_max) : job_bytes_max_(job_bytes_max) {}

  void Append(std::string_view bytes);
  // None: more input is needed. The views of a command are valid until the next call.
  std::optional<Command> Next();

  // True when all input has been read; the buffer is then emptied, as it is by a Next that gives no
  // command.
  bool Rest();

  size_t buffered_bytes() const { return buffer_.size() - begin_; }

  // An idle connection keeps no more than this.
  static constexpr size_t kIdleBytesMax = 2048;

 private:
  enum class State : uint8_t { kLine, kLongLine, kBody, kSkippedBody };

  std::string_view unread() const { return std::string_view(buffer_).substr(begin_); }

  std::optional<Command> NextLine();
  void RefuseLongLine(std::string_view begun);
  std::optional<Command> SkipLine();
  std::optional<Command> NextBody();
  bool BodyIsThere() const;
  Command TakeBody(Command command);
  std::optional<Command> SkipBody();
  void Consume(size_t bytes);

  const size_t job_bytes_max_;
  std::string buffer_;
  size_t begin_ = 0;  // the first unread byte
  State state_ = State::kLine;
  size_t searched_ = 0;      // no line ends before this, counted from begin_
  size_t line_bytes_ = 0;    // of the put whose body is awaited; it is still in the buffer
  uint64_t skip_bytes_ = 0;  // left to skip of a refused command's body
  Command refused_;          // the command whose body, or long line, is being skipped
  uint64_t body_bytes_ = 0;
};

}  // namespace delayd::beanstalk
