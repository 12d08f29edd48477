// tests/bench/load/dialect.h — one server's way of saying put, lease, ack and cancel, for one
// connection.
//
// What:    requests are appended to a buffer, answers are read from one, in the order of the
// requests. A request
//          carries several jobs where a user of that server would send them so (a batch of rows),
//          and one job where he would pipeline.
// Units:   milliseconds for delays. Ids are the server's, or the client's where the server gives
// none.
// Errors:  an answer that is no success ends the tool.
// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/load/load_connection.h"

namespace delayd::load {

enum class Verb : uint8_t { kPut, kLease, kAck, kCancel };

struct NewJob {
  int64_t delay_ms = 0;
  std::string_view body;
  int64_t queue = -1;  // -1: the default one
};

struct LeasedJob {
  std::string_view token;  // what an ack must show
  std::string_view body;
};

struct Answer {
  Verb verb = Verb::kPut;
  size_t asked = 0;             // jobs in the request
  int64_t sent_us = 0;          // when the request was due to be sent
  std::vector<uint64_t> ids;    // kPut
  std::vector<LeasedJob> jobs;  // kLease; none: nothing is due. Views of the connection's input.
};

class Dialect {
 public:
  Dialect() = default;
  virtual ~Dialect() = default;
  Dialect(const Dialect&) = delete;
  Dialect& operator=(const Dialect&) = delete;

  // What a connection begins with, to the end.
  virtual void Start(LoadConnection* connection) { (void)connection; }

  // How many jobs one request carries when `window` are to be in flight.
  virtual size_t JobsEach(Verb verb, size_t window) const = 0;
  // Whether a lease can wait for a job; else it must be polled.
  virtual bool CanWait() const = 0;

  virtual void Put(std::span<const NewJob> jobs, std::string* out) = 0;
  virtual void Lease(size_t count, bool wait, std::string* out) = 0;
  virtual void Ack(std::span<const std::string_view> tokens, std::string* out) = 0;
  virtual void Cancel(std::span<const uint64_t> ids, std::string* out) = 0;

  // Reads the answer to the oldest request, whose verb and count are set. Returns the bytes it
  // takes; 0: it is not whole yet.
  virtual size_t Read(std::string_view input, Answer* answer) = 0;
};

std::unique_ptr<Dialect> MakeBeanstalk(bool batches);
std::unique_ptr<Dialect> MakeHttp();
std::unique_ptr<Dialect> MakeRedis();
std::unique_ptr<Dialect> MakePostgres();

}  // namespace delayd::load
