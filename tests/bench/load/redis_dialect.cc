// The usual delay queue on Redis: bodies in a hash, due times in a sorted set, a script that moves
// what is due into a sorted set of leases. Ids are the client's. An enqueue is a transaction of
// HSET and ZADD and not a script: that is the faster of the two.
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <deque>

#include "tests/bench/load/dialect.h"

namespace delayd::load {
namespace {

constexpr std::string_view kLeaseScript = R"(
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
if #ids == 0 then return {} end
redis.call('ZREM', KEYS[1], unpack(ids))
local leases = {}
for i, id in ipairs(ids) do
  leases[2 * i - 1] = now + 60000
  leases[2 * i] = id
end
redis.call('ZADD', KEYS[2], unpack(leases))
return {ids, redis.call('HMGET', KEYS[3], unpack(ids))}
)";

void AppendString(std::string_view text, std::string* out) {
  *out += "$" + std::to_string(text.size()) + "\r\n";
  *out += text;
  *out += "\r\n";
}

void AppendCommand(std::initializer_list<std::string_view> words, std::string* out) {
  *out += "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    AppendString(word, out);
  }
}

// Reads RESP from front to end. Whatever is not whole makes it `short_of_input`.
class RespReader {
 public:
  explicit RespReader(std::string_view input) : input_(input) {}

  bool short_of_input() const { return short_; }

  size_t taken() const { return at_; }

  // The rest of a line behind its type; ends the tool when it is an error.
  std::string_view Line(char* type) {
    const size_t end = input_.find("\r\n", at_);
    if (short_ || end == std::string_view::npos) {
      short_ = true;
      return {};
    }
    *type = input_[at_];
    const std::string_view line = input_.substr(at_ + 1, end - at_ - 1);
    if (*type == '-') {
      Fail("the server answered: " + std::string(line));
    }
    at_ = end + 2;
    return line;
  }

  // The length of an array, or the bytes of a string.
  int64_t Number() {
    char type = 0;
    const std::string_view line = Line(&type);
    int64_t number = 0;
    std::from_chars(line.data(), line.data() + line.size(), number);
    return number;
  }

  std::string_view String() {
    const int64_t size = Number();
    if (short_ || size < 0) {
      return {};
    }
    const auto bytes = static_cast<size_t>(size);
    if (input_.size() < at_ + bytes + 2) {
      short_ = true;
      return {};
    }
    const std::string_view text = input_.substr(at_, bytes);
    at_ += bytes + 2;
    return text;
  }

 private:
  std::string_view input_;
  size_t at_ = 0;
  bool short_ = false;
};

int64_t WallMillis() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

uint64_t NextId() {
  static uint64_t last = static_cast<uint64_t>(::getpid()) << 32;
  return ++last;
}

class RedisDialect : public Dialect {
 public:
  void Start(LoadConnection* connection) override {
    AppendCommand({"SCRIPT", "LOAD", kLeaseScript}, &connection->out());
    for (;;) {
      connection->Exchange();
      RespReader reader(connection->input());
      script_ = std::string(reader.String());
      if (!reader.short_of_input()) {
        connection->Take(reader.taken());
        return;
      }
    }
  }

  size_t JobsEach(Verb verb, size_t window) const override {
    return verb == Verb::kLease || verb == Verb::kAck ? window : 1;
  }

  bool CanWait() const override { return false; }

  void Put(std::span<const NewJob> jobs, std::string* out) override {
    const uint64_t number = NextId();
    const std::string id = std::to_string(number);
    AppendCommand({"MULTI"}, out);
    AppendCommand({"HSET", "jobs", id, jobs.front().body}, out);
    AppendCommand({"ZADD", "delayed", std::to_string(WallMillis() + jobs.front().delay_ms), id},
                  out);
    AppendCommand({"EXEC"}, out);
    puts_.push_back(number);
  }

  void Lease(size_t count, bool, std::string* out) override {
    AppendCommand({"EVALSHA", script_, "3", "delayed", "leased", "jobs", std::to_string(count)},
                  out);
  }

  void Ack(std::span<const std::string_view> tokens, std::string* out) override {
    AppendCommand({"MULTI"}, out);
    for (const auto& [verb, key] : {std::pair("ZREM", "leased"), std::pair("HDEL", "jobs")}) {
      *out += "*" + std::to_string(tokens.size() + 2) + "\r\n";
      AppendString(verb, out);
      AppendString(key, out);
      for (const std::string_view token : tokens) {
        AppendString(token, out);
      }
    }
    AppendCommand({"EXEC"}, out);
  }

  void Cancel(std::span<const uint64_t> ids, std::string* out) override {
    const std::string id = std::to_string(ids.front());
    AppendCommand({"MULTI"}, out);
    AppendCommand({"ZREM", "delayed", id}, out);
    AppendCommand({"HDEL", "jobs", id}, out);
    AppendCommand({"EXEC"}, out);
  }

  size_t Read(std::string_view input, Answer* answer) override {
    RespReader reader(input);
    if (answer->verb == Verb::kLease) {
      ReadJobs(&reader, answer);
    } else {
      // OK, QUEUED, QUEUED, an array of two, and each how many it changed.
      char type = 0;
      for (int line = 0; line < 4; ++line) {
        reader.Line(&type);
      }
      const int64_t first = reader.Number();
      const int64_t second = reader.Number();
      if (!reader.short_of_input() && first + second != static_cast<int64_t>(2 * answer->asked)) {
        Fail("a transaction changed fewer jobs than it named");
      }
      if (!reader.short_of_input() && answer->verb == Verb::kPut) {
        answer->ids.push_back(puts_.front());
        puts_.pop_front();
      }
    }
    return reader.short_of_input() ? 0 : reader.taken();
  }

 private:
  static void ReadJobs(RespReader* reader, Answer* answer) {
    if (reader->Number() != 2) {
      return;
    }
    const int64_t count = reader->Number();
    for (int64_t i = 0; i < count && !reader->short_of_input(); ++i) {
      answer->jobs.push_back({.token = reader->String(), .body = {}});
    }
    reader->Number();
    for (LeasedJob& job : answer->jobs) {
      job.body = reader->String();
    }
  }

  std::string script_;
  std::deque<uint64_t> puts_;  // not yet answered
};

}  // namespace

std::unique_ptr<Dialect> MakeRedis() {
  return std::make_unique<RedisDialect>();
}

}  // namespace delayd::load
