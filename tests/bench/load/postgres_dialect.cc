// The usual job table on PostgreSQL: FOR UPDATE SKIP LOCKED takes due rows inside a transaction,
// and the ack deletes them and commits. Protocol version 3, prepared statements, binary parameters.
#include <endian.h>

#include <cstring>

#include "tests/bench/load/dialect.h"

#include <arpa/inet.h>

namespace delayd::load {
namespace {

constexpr uint32_t kInt8Oid = 20;
constexpr uint32_t kByteaOid = 17;

template <typename T>
T Get(std::string_view bytes, size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

uint32_t Get32(std::string_view bytes, size_t at) {
  return ntohl(Get<uint32_t>(bytes, at));
}

void Add16(uint16_t value, std::string* out) {
  value = htons(value);
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

void Add32(uint64_t value, std::string* out) {
  const uint32_t network = htonl(static_cast<uint32_t>(value));
  out->append(reinterpret_cast<const char*>(&network), sizeof network);
}

void Add64(uint64_t value, std::string* out) {
  value = htobe64(value);
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// A message: its type, its length when it is closed, and what is put between.
class Message {
 public:
  Message(char type, std::string* out) : out_(out) {
    if (type != 0) {
      *out_ += type;
    }
    begin_ = out_->size();
    Add32(0, out_);
  }

  ~Message() {
    const uint32_t size = htonl(static_cast<uint32_t>(out_->size() - begin_));
    std::memcpy(out_->data() + begin_, &size, sizeof size);
  }

  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  void Text(std::string_view text) {
    *out_ += text;
    *out_ += '\0';
  }

 private:
  std::string* out_;
  size_t begin_;
};

void AddParse(std::string_view name, std::string_view sql, std::string* out) {
  Message message('P', out);
  message.Text(name);
  message.Text(sql);
  Add16(0, out);
}

// `parameters` in binary, each with its length before it.
void AddRun(std::string_view name, uint16_t count, std::string_view parameters, std::string* out) {
  {
    Message message('B', out);
    message.Text("");
    message.Text(name);
    Add16(1, out);
    Add16(1, out);  // all parameters are binary
    Add16(count, out);
    *out += parameters;
    Add16(1, out);
    Add16(1, out);  // and all results
  }
  Message message('E', out);
  message.Text("");
  Add32(0, out);
}

void AddSync(std::string* out) {
  const Message message('S', out);
}

constexpr std::string_view kSetUp =
    "SET client_min_messages = error; SET enable_seqscan = off; SET enable_bitmapscan = off;"
    "CREATE TABLE IF NOT EXISTS jobs (id bigserial PRIMARY KEY, run_at timestamptz NOT NULL,"
    " payload bytea NOT NULL);"
    "CREATE INDEX IF NOT EXISTS jobs_run_at ON jobs (run_at)";

class PostgresDialect : public Dialect {
 public:
  void Start(LoadConnection* connection) override {
    std::string* const out = &connection->out();
    {
      Message message(0, out);
      Add32(196608, out);  // 3.0
      message.Text("user");
      message.Text("postgres");
      message.Text("database");
      message.Text("postgres");
      *out += '\0';
    }
    AwaitReady(connection);
    {
      Message message('Q', out);
      message.Text(kSetUp);
    }
    AwaitReady(connection);
    AddParse("put1",
             "INSERT INTO jobs (run_at, payload) VALUES (now() + $1::int8 * interval '1 ms',"
             " $2::bytea) RETURNING id",
             out);
    AddParse("put",
             "INSERT INTO jobs (run_at, payload) SELECT now() + d * interval '1 ms', p"
             " FROM unnest($1::int8[], $2::bytea[]) AS t (d, p) RETURNING id",
             out);
    AddParse("lease",
             "SELECT id, payload FROM jobs WHERE run_at <= now() ORDER BY run_at LIMIT $1::int8"
             " FOR UPDATE SKIP LOCKED",
             out);
    AddParse("delete", "DELETE FROM jobs WHERE id = ANY ($1::int8[])", out);
    AddParse("begin", "BEGIN", out);
    AddParse("commit", "COMMIT", out);
    AddSync(out);
    AwaitReady(connection);
  }

  size_t JobsEach(Verb, size_t window) const override { return window; }

  bool CanWait() const override { return false; }

  void Put(std::span<const NewJob> jobs, std::string* out) override {
    parameters_.clear();
    if (jobs.size() == 1) {
      Add32(8, &parameters_);
      Add64(static_cast<uint64_t>(jobs.front().delay_ms), &parameters_);
      AddBytes(jobs.front().body);
      AddRun("put1", 2, parameters_, out);
      AddSync(out);
      return;
    }
    BeginArray(kInt8Oid, jobs.size());
    for (const NewJob& job : jobs) {
      Add32(8, &parameters_);
      Add64(static_cast<uint64_t>(job.delay_ms), &parameters_);
    }
    EndArray();
    BeginArray(kByteaOid, jobs.size());
    for (const NewJob& job : jobs) {
      AddBytes(job.body);
    }
    EndArray();
    AddRun("put", 2, parameters_, out);
    AddSync(out);
  }

  // A transaction that found nothing is still open: its now() stands still, so another begins.
  void Lease(size_t count, bool, std::string* out) override {
    if (open_) {
      AddRun("commit", 0, "", out);
    }
    open_ = true;
    parameters_.clear();
    Add32(8, &parameters_);
    Add64(count, &parameters_);
    AddRun("begin", 0, "", out);
    AddRun("lease", 1, parameters_, out);
    AddSync(out);
  }

  void Ack(std::span<const std::string_view> tokens, std::string* out) override {
    parameters_.clear();
    BeginArray(kInt8Oid, tokens.size());
    for (const std::string_view token : tokens) {
      Add32(8, &parameters_);
      parameters_ += token;
    }
    EndArray();
    AddRun("delete", 1, parameters_, out);
    AddRun("commit", 0, "", out);
    AddSync(out);
    open_ = false;
  }

  void Cancel(std::span<const uint64_t> ids, std::string* out) override {
    parameters_.clear();
    BeginArray(kInt8Oid, ids.size());
    for (const uint64_t id : ids) {
      Add32(8, &parameters_);
      Add64(id, &parameters_);
    }
    EndArray();
    AddRun("delete", 1, parameters_, out);
    AddSync(out);
  }

  size_t Read(std::string_view input, Answer* answer) override {
    return ReadMessages(input, [answer](std::string_view row) { TakeRow(row, answer); });
  }

 private:
  // Tokens are the eight bytes of an id, as they came.
  static void TakeRow(std::string_view row, Answer* answer) {
    if (answer->verb == Verb::kPut) {
      answer->ids.push_back(be64toh(Get<uint64_t>(row, 11)));
      return;
    }
    const size_t size = Get32(row, 19);
    answer->jobs.push_back({.token = row.substr(11, 8), .body = row.substr(23, size)});
  }

  static std::string Readable(std::string_view message) {
    std::string text(message.substr(5));
    for (char& c : text) {
      c = c < ' ' ? ' ' : c;
    }
    return text;
  }

  static void AwaitReady(LoadConnection* connection) {
    for (;;) {
      connection->Exchange();
      const size_t taken = ReadMessages(connection->input(), [](std::string_view) {});
      if (taken > 0) {
        connection->Take(taken);
        return;
      }
    }
  }

  // Up to and with ReadyForQuery, which ends every answer; 0: it is not there yet.
  template <typename TakeRow>
  static size_t ReadMessages(std::string_view input, const TakeRow& take_row) {
    for (size_t at = 0; at + 5 <= input.size();) {
      const size_t next = at + 1 + Get32(input, at + 1);
      if (next > input.size()) {
        return 0;
      }
      const std::string_view message = input.substr(at, next - at);
      if (message.front() == 'E') {
        Fail("the server answered: " + Readable(message));
      } else if (message.front() == 'D') {
        take_row(message);
      } else if (message.front() == 'Z') {
        return next;
      }
      at = next;
    }
    return 0;
  }

  void AddBytes(std::string_view bytes) {
    Add32(bytes.size(), &parameters_);
    parameters_ += bytes;
  }

  void BeginArray(uint32_t type, size_t count) {
    array_begin_ = parameters_.size();
    Add32(0, &parameters_);  // the length, at its end
    Add32(1, &parameters_);  // one dimension
    Add32(0, &parameters_);  // without nulls
    Add32(type, &parameters_);
    Add32(count, &parameters_);
    Add32(1, &parameters_);  // the first has number 1
  }

  void EndArray() {
    const uint32_t size = htonl(static_cast<uint32_t>(parameters_.size() - array_begin_ - 4));
    std::memcpy(parameters_.data() + array_begin_, &size, sizeof size);
  }

  std::string parameters_;
  size_t array_begin_ = 0;
  bool open_ = false;  // a lease's transaction
};

}  // namespace

std::unique_ptr<Dialect> MakePostgres() {
  return std::make_unique<PostgresDialect>();
}

}  // namespace delayd::load
