// The beanstalk protocol, and delayd's batches where they are asked for. Whole seconds go as every
// server of the protocol takes them.
#include <charconv>

#include "tests/bench/load/dialect.h"

namespace delayd::load {
namespace {

uint64_t NumberAt(std::string_view line, size_t at) {
  uint64_t number = 0;
  std::from_chars(line.data() + at, line.data() + line.size(), number);
  return number;
}

class BeanstalkDialect : public Dialect {
 public:
  explicit BeanstalkDialect(bool batches) : batches_(batches) {}

  size_t JobsEach(Verb, size_t window) const override { return batches_ ? window : 1; }

  bool CanWait() const override { return true; }

  void Put(std::span<const NewJob> jobs, std::string* out) override {
    if (jobs.size() > 1) {
      PutBatch(jobs, out);
      return;
    }
    const NewJob& job = jobs.front();
    if (job.queue >= 0) {
      *out += "use tube-" + std::to_string(job.queue) + "\r\n";
    }
    *out += job.delay_ms % 1000 == 0 ? "put 1024 " + std::to_string(job.delay_ms / 1000) + " 60 "
                                     : "put-ms 1024 " + std::to_string(job.delay_ms) + " 60000 ";
    *out += std::to_string(job.body.size()) + "\r\n";
    *out += job.body;
    *out += "\r\n";
  }

  void Lease(size_t count, bool wait, std::string* out) override {
    if (batches_) {
      *out += "reserve-batch " + std::to_string(count) + (wait ? " 3600\r\n" : " 0\r\n");
      return;
    }
    *out += wait ? "reserve\r\n" : "reserve-with-timeout 0\r\n";
  }

  void Ack(std::span<const std::string_view> tokens, std::string* out) override {
    Delete(tokens, out);
  }

  void Cancel(std::span<const uint64_t> ids, std::string* out) override { Delete(ids, out); }

  size_t Read(std::string_view input, Answer* answer) override {
    size_t begin = 0;
    size_t end = input.find("\r\n");
    if (input.starts_with("USING ") && end != std::string_view::npos) {
      begin = end + 2;
      end = input.find("\r\n", begin);
    }
    if (end == std::string_view::npos) {
      return 0;
    }
    const std::string_view line = input.substr(begin, end - begin);
    if (line.starts_with("RESERVED ") || line.starts_with("OK ")) {
      const size_t size = NumberAt(line, line.rfind(' ') + 1);
      if (input.size() < end + 2 + size + 2) {
        return 0;
      }
      TakeBody(line, input.substr(end + 2, size), answer);
      return end + 2 + size + 2;
    }
    const bool right = answer->verb == Verb::kPut     ? line.starts_with("INSERTED ")
                       : answer->verb == Verb::kLease ? line == "TIMED_OUT"
                                                      : line == "DELETED";
    if (!right) {
      Fail("the server answered: " + std::string(line));
    }
    if (answer->verb == Verb::kPut) {
      answer->ids.push_back(NumberAt(line, 9));
    }
    return end + 2;
  }

 private:
  static void PutBatch(std::span<const NewJob> jobs, std::string* out) {
    std::string part;
    for (const NewJob& job : jobs) {
      part += "1024 " + std::to_string(job.delay_ms) + " 60000 " + std::to_string(job.body.size()) +
              "\r\n";
      part += job.body;
      part += "\r\n";
    }
    *out += "put-batch " + std::to_string(jobs.size()) + " " + std::to_string(part.size()) + "\r\n";
    *out += part;
    *out += "\r\n";
  }

  template <typename Id>
  void Delete(std::span<const Id> ids, std::string* out) const {
    std::string list;
    for (const Id& id : ids) {
      list += list.empty() ? "" : " ";
      AppendId(id, &list);
    }
    if (!batches_) {
      *out += "delete " + list + "\r\n";
      return;
    }
    *out += "delete-batch " + std::to_string(ids.size()) + " " + std::to_string(list.size()) +
            "\r\n" + list + "\r\n";
  }

  static void AppendId(std::string_view id, std::string* out) { *out += id; }

  static void AppendId(uint64_t id, std::string* out) { *out += std::to_string(id); }

  static void TakeReserved(std::string_view line, std::string_view body, Answer* answer) {
    const std::string_view id = line.substr(9, line.find(' ', 9) - 9);
    answer->jobs.push_back({.token = id, .body = body});
  }

  static void TakeBody(std::string_view line, std::string_view body, Answer* answer) {
    if (line.starts_with("RESERVED ")) {
      TakeReserved(line, body, answer);
    } else if (answer->verb == Verb::kLease) {
      while (!body.empty()) {
        const std::string_view one = body.substr(0, body.find("\r\n"));
        const size_t size = NumberAt(one, one.rfind(' ') + 1);
        TakeReserved(one, body.substr(one.size() + 2, size), answer);
        body.remove_prefix(one.size() + 2 + size + 2);
      }
    } else if (answer->verb == Verb::kPut) {
      TakeIds(body, answer);
    } else if (body.find("NOT_FOUND") != std::string_view::npos) {
      Fail("a batch deleted fewer jobs than it named");
    }
  }

  static void TakeIds(std::string_view body, Answer* answer) {
    for (size_t at = 0; (at = body.find(' ', at)) != std::string_view::npos; ++at) {
      answer->ids.push_back(NumberAt(body, at + 1));  // "INSERTED 5\n"
    }
  }

  const bool batches_;
};

}  // namespace

std::unique_ptr<Dialect> MakeBeanstalk(bool batches) {
  return std::make_unique<BeanstalkDialect>(batches);
}

}  // namespace delayd::load
