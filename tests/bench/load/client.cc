#include "tests/bench/load/client.h"

#include <chrono>

namespace delayd::load {
namespace {

std::unique_ptr<Dialect> MakeDialect(const std::string& protocol) {
  if (protocol == "beanstalk" || protocol == "beanstalk-batch") {
    return MakeBeanstalk(protocol != "beanstalk");
  }
  if (protocol == "http") {
    return MakeHttp();
  }
  if (protocol == "redis") {
    return MakeRedis();
  }
  if (protocol == "postgres") {
    return MakePostgres();
  }
  Fail("the protocol must be beanstalk, beanstalk-batch, http, redis or postgres, not " + protocol);
}

}  // namespace

int64_t NowMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Client::Client(const Options& options)
    : connection_(options.target), dialect_(MakeDialect(options.protocol)) {
  dialect_->Start(&connection_);
}

void Client::Put(std::span<const NewJob> jobs, int64_t due_us) {
  dialect_->Put(jobs, &connection_.out());
  under_way_.push_back({Verb::kPut, jobs.size(), due_us});
}

void Client::Lease(size_t count, bool wait) {
  dialect_->Lease(count, wait, &connection_.out());
  under_way_.push_back({Verb::kLease, count, 0});
}

void Client::Ack(std::span<const std::string_view> tokens) {
  dialect_->Ack(tokens, &connection_.out());
  under_way_.push_back({Verb::kAck, tokens.size(), 0});
}

void Client::Cancel(std::span<const uint64_t> ids) {
  dialect_->Cancel(ids, &connection_.out());
  under_way_.push_back({Verb::kCancel, ids.size(), NowMicros()});
}

const Answer* Client::Next() {
  if (under_way_.empty()) {
    return nullptr;
  }
  const Request& request = under_way_.front();
  answer_.verb = request.verb;
  answer_.asked = request.jobs;
  answer_.sent_us = request.due_us;
  answer_.ids.clear();
  answer_.jobs.clear();
  const size_t taken = dialect_->Read(connection_.input(), &answer_);
  if (taken == 0) {
    return nullptr;
  }
  connection_.Take(taken);
  under_way_.pop_front();
  return &answer_;
}

}  // namespace delayd::load
