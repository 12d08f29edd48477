#include "tests/storm/tube_client.h"

#include <poll.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "protocol/json_writer.h"

namespace delayd::storm {
namespace {

// The time to run of its own jobs. Those of the API have more.
constexpr int64_t kTtrMs = 1000;

std::string Crlf(const std::string& line) {
  return line + "\r\n";
}

std::string IdText(JobId id) {
  return std::to_string(ToInt(id));
}

int64_t DelayOf(const JobSpec& spec) {
  return std::get<DueAfter>(spec.due).delay.count();
}

// The same each time the job is put: under a key it is content.
uint64_t PriorityOf(const JobSpec& spec) {
  return spec.payload.size() % 3;
}

// "1 50 1000 200", and the key.
std::string Numbers(const JobSpec& spec) {
  return std::to_string(PriorityOf(spec)) + " " + std::to_string(DelayOf(spec)) + " " +
         std::to_string(kTtrMs) + " " + std::to_string(spec.payload.size()) +
         (spec.key.empty() ? "" : " " + spec.key);
}

// The number behind the first space.
uint64_t NumberIn(std::string_view line) {
  uint64_t number = 0;
  const size_t at = line.find(' ');
  DELAYD_CHECK(at != std::string_view::npos);
  std::from_chars(line.data() + at + 1, line.data() + line.size(), number);
  return number;
}

std::string_view TakeLine(std::string_view* text) {
  const size_t end = text->find('\n');
  DELAYD_CHECK(end != std::string_view::npos);
  std::string_view line = text->substr(0, end);
  text->remove_prefix(end + 1);
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  return line;
}

// What stands behind the line of a reply "OK <bytes>" or "FOUND <id> <bytes>".
std::string_view BodyOf(std::string_view reply) {
  TakeLine(&reply);
  reply.remove_suffix(2);
  return reply;
}

std::string ReservationEntry(JobId id, const std::string& token) {
  protocol::JsonObjectWriter entry;
  entry.Number("id", ToInt(id));
  entry.String("token", token);
  return entry.Take();
}

}  // namespace

void TubeClient::DoSomething() {
  const uint64_t dice = Below(100);
  if (dice < 35) {
    EnqueueNew();
  } else if (dice < 77) {
    Lease();
  } else if (dice < 87) {
    DeleteMine();
  } else if (dice < 91) {
    EnqueueAgain();
  } else if (dice < 93) {
    Kick();
  } else if (dice < 96) {
    Peek();
  } else {
    UseOldReservation();
  }
}

void TubeClient::DrawTimes(JobSpec* spec) {
  const uint64_t when = Below(100);
  spec->due = DueAfter{Millis(static_cast<int64_t>(when < 50   ? 0
                                                   : when < 70 ? Below(50)
                                                   : when < 90 ? 1000 * Below(3)
                                                   : when < 97 ? Below(2000)
                                                               : 3'600'000))};
  spec->max_attempts = 0;
}

void TubeClient::EnqueueNew() {
  std::vector<JobSpec> specs = NewSpecs();
  if (Chance(50)) {
    std::vector<std::vector<JobSpec>> puts;
    for (const JobSpec& spec : specs) {
      puts.push_back({spec});
    }
    return PutAll(puts);
  }
  for (JobSpec& spec : specs) {
    spec.queue = specs.front().queue;
  }
  Enqueue(specs);
}

std::string TubeClient::PutCommand(const std::vector<JobSpec>& specs) {
  const JobSpec& first = specs.front();
  if (specs.size() == 1 && first.key.empty() && DelayOf(first) % 1000 == 0 && Chance(70)) {
    return Crlf("put " + std::to_string(PriorityOf(first)) + " " +
                std::to_string(DelayOf(first) / 1000) + " " + std::to_string(kTtrMs / 1000) + " " +
                std::to_string(first.payload.size())) +
           Crlf(first.payload);
  }
  if (specs.size() == 1 && Chance(80)) {
    return Crlf((first.key.empty() ? "put-ms " : "put-key ") + Numbers(first)) +
           Crlf(first.payload);
  }
  std::string body;
  for (const JobSpec& spec : specs) {
    body += Crlf(Numbers(spec)) + Crlf(spec.payload);
  }
  return Crlf("put-batch " + std::to_string(specs.size()) + " " + std::to_string(body.size())) +
         Crlf(body);
}

void TubeClient::Enqueue(const std::vector<JobSpec>& specs) {
  PutAll({specs});
}

void TubeClient::PutAll(const std::vector<std::vector<JobSpec>>& puts) {
  std::vector<uint64_t> requests;
  std::string commands;
  for (const std::vector<JobSpec>& specs : puts) {
    std::vector<std::string> entries;
    for (const JobSpec& spec : specs) {
      entries.push_back(SpecEntry(spec));
    }
    requests.push_back(history_.Invoke("enqueue", entries));
    commands += Crlf("use " + specs.front().queue) + PutCommand(specs);
  }
  bool is_there = connection_->TrySend(commands);
  for (size_t i = 0; i < puts.size(); ++i) {
    const auto reply = is_there ? ReadReply(/*of=*/2) : std::nullopt;
    is_there = reply.has_value();
    if (reply) {
      NotePut(requests[i], puts[i], *reply);
      continue;
    }
    history_.Unknown(requests[i]);
    if (!puts[i].front().key.empty()) {
      unanswered_.push_back(puts[i]);
    }
  }
  if (!is_there) {
    Connect();
  }
}

void TubeClient::NotePut(uint64_t request,
                         const std::vector<JobSpec>& specs,
                         std::string_view reply) {
  if (reply == "KEY_CONFLICT\r\n") {
    return history_.Fail(request, 0, "key_conflict");
  }
  std::string_view lines = reply.starts_with("OK ") ? BodyOf(reply) : reply;
  std::vector<std::string> entries;
  for (const JobSpec& spec : specs) {
    const std::string_view line = TakeLine(&lines);
    const bool existed = line.starts_with("EXISTS ");
    DELAYD_CHECK(existed || line.starts_with("INSERTED "));
    const JobId id{NumberIn(line)};
    entries.push_back(EnqueuedEntry(id, existed));
    Remember(&mine_, Mine{id, spec});
  }
  history_.Ok(request, 0, entries);
}

void TubeClient::Lease() {
  const std::string wait = Chance(85) ? "0" : "1";
  const std::string command = Chance(50)
                                  ? "reserve-with-timeout " + wait
                                  : "reserve-batch " + std::to_string(1 + Below(10)) + " " + wait;
  const uint64_t request = history_.Invoke("lease", {});
  const auto reply = Exchange({request}, Crlf(command));
  if (!reply) {
    return;
  }
  std::vector<std::string> entries;
  if (*reply != "TIMED_OUT\r\n" && *reply != "DEADLINE_SOON\r\n") {
    NoteReserved(reply->starts_with("OK ") ? BodyOf(*reply) : *reply, &entries);
  }
  history_.Ok(request, 0, entries);
}

void TubeClient::NoteReserved(std::string_view reply, std::vector<std::string>* entries) {
  while (!reply.empty()) {
    const std::string_view line = TakeLine(&reply);
    DELAYD_CHECK(line.starts_with("RESERVED "));
    const JobId id{NumberIn(line)};
    const uint64_t size = NumberIn(line.substr(line.find(' ') + 1));
    DELAYD_CHECK(reply.size() >= size + 2);
    const std::string token =
        "t" + std::to_string(options_.proc) + "-" + std::to_string(next_reservation_++);
    protocol::JsonObjectWriter entry;
    entry.Number("id", ToInt(id));
    entry.String("payload", LabelOf(reply.substr(0, size)));
    entry.String("token", token);
    entry.Number("lease", static_cast<uint64_t>(kTtrMs));
    entries->push_back(entry.Take());
    reply.remove_prefix(size + 2);
    DropHeld(id);
    for (auto* others : {&forgotten_, &old_}) {
      std::erase_if(*others, [id](const Held& other) { return other.id == id; });
    }
    held_.push_back({token, id});
  }
}

void TubeClient::EndOne() {
  const Held held = held_[Below(held_.size())];
  const uint64_t dice = draining_ ? 0 : Below(100);
  if (dice < 40) {
    return Delete({held.id});
  }
  if (dice < 55) {
    std::vector<JobId> ids;
    for (const Held& one : held_) {
      ids.push_back(one.id);
    }
    return Delete(ids);
  }
  if (dice < 88) {
    return Change(dice < 75 ? "release" : dice < 80 ? "bury" : "touch", held);
  }
  if (dice < 92) {
    return Connect();
  }
  // Else its time runs out.
  DropHeld(held.id);
  forgotten_.push_back(held);
}

void TubeClient::Change(const std::string& verb, const Held& held) {
  const uint64_t seconds = Chance(80) ? 0 : 1;
  protocol::JsonObjectWriter entry;
  entry.Number("id", ToInt(held.id));
  entry.String("token", held.token);
  std::string command = verb + " " + IdText(held.id);
  if (verb == "release") {
    entry.Number("delay", seconds * 1000);
    command += " " + std::to_string(Below(3)) + " " + std::to_string(seconds);
  } else if (verb == "bury") {
    command += " 0";
  } else {
    entry.Number("lease", static_cast<uint64_t>(kTtrMs));
  }
  const char* op = verb == "release" ? "nack" : verb == "bury" ? "bury" : "extend";
  const uint64_t request = history_.Invoke(op, {entry.Take()});
  const auto reply = Exchange({request}, Crlf(command));
  if (!reply) {
    return;
  }
  NoteEnd(request, *reply, "NOT_FOUND", "lease_lost");
  if (verb != "touch") {
    DropHeld(held.id);
    Remember(&old_, held);
  }
}

void TubeClient::UseOldReservation() {
  const std::vector<Held>& from = Chance(50) ? old_ : forgotten_;
  if (!from.empty()) {
    Change(Chance(50) ? "release" : "touch", Held(from[Below(from.size())]));
  }
}

void TubeClient::Delete(const std::vector<JobId>& ids) {
  std::vector<uint64_t> requests;
  std::string list;
  for (const JobId id : ids) {
    requests.push_back(history_.Invoke("cancel", {IdEntry(id)}));
    list += (list.empty() ? "" : " ") + IdText(id);
  }
  const bool single = ids.size() == 1 && Chance(80);
  const auto reply = Exchange(requests,
                              single ? Crlf("delete " + list)
                                     : Crlf("delete-batch " + std::to_string(ids.size()) + " " +
                                            std::to_string(list.size())) +
                                           Crlf(list));
  if (!reply) {
    return;
  }
  std::string_view lines = reply->starts_with("OK ") ? BodyOf(*reply) : *reply;
  for (size_t i = 0; i < ids.size(); ++i) {
    // It may be reserved by somebody else.
    NoteEnd(requests[i], TakeLine(&lines), "NOT_FOUND", "leased");
    DropHeld(ids[i]);
  }
}

void TubeClient::DeleteMine() {
  const std::optional<Mine> mine = PickMine();
  if (mine && !mine->spec.key.empty() && Chance(50)) {
    DeleteByKey(*mine);
  } else if (mine) {
    Delete({mine->id});
  }
}

void TubeClient::DeleteByKey(const Mine& mine) {
  const uint64_t request = history_.Invoke("cancel", {IdEntry(mine.id)});
  const auto reply =
      Exchange({request}, Crlf("use " + mine.spec.queue) + Crlf("delete-key " + mine.spec.key), 2);
  if (reply) {
    const bool leased = *reply == "JOB_RESERVED\r\n";
    NoteEnd(
        request, *reply, leased ? "JOB_RESERVED" : "NOT_FOUND", leased ? "leased" : "not_found");
  }
}

void TubeClient::Kick() {
  const std::optional<Mine> mine = PickMine();
  if (!mine) {
    return;
  }
  const uint64_t request = history_.Invoke("kick", {KickEntry(mine->id)});
  const auto reply = Exchange({request}, Crlf("kick-job " + IdText(mine->id)));
  if (reply) {
    // It may be ready, or reserved.
    NoteEnd(request, *reply, "NOT_FOUND", "conflict");
  }
}

void TubeClient::Peek() {
  const std::optional<Mine> mine = PickMine();
  if (!mine) {
    return;
  }
  const JobId id = mine->id;
  const uint64_t request = history_.Invoke("show", {IdEntry(id)});
  const auto reply = Exchange({request}, Crlf("peek " + IdText(id)));
  if (!reply) {
    return;
  }
  if (*reply == "NOT_FOUND\r\n") {
    return history_.Fail(request, 0, "not_found");
  }
  DELAYD_CHECK(reply->starts_with("FOUND " + IdText(id) + " "));
  protocol::JsonObjectWriter entry;
  entry.Number("id", ToInt(id));
  entry.String("payload", LabelOf(BodyOf(*reply)));
  history_.Ok(request, 0, {entry.Take()});
}

// The connection, and what becomes of these.
void TubeClient::Lose(const std::vector<uint64_t>& requests) {
  for (const uint64_t request : requests) {
    history_.Unknown(request);
  }
  Connect();
}

void TubeClient::NoteEnd(uint64_t request,
                         std::string_view reply,
                         std::string_view refusal,
                         std::string_view code) {
  if (reply.starts_with(refusal)) {
    return history_.Fail(request, 0, code);
  }
  for (const char* done : {"DELETED", "RELEASED", "BURIED", "TOUCHED", "KICKED"}) {
    if (reply.starts_with(done)) {
      return history_.Ok(request, 0, {});
    }
  }
  DELAYD_CHECK(false);
}

std::optional<std::string> TubeClient::Exchange(const std::vector<uint64_t>& requests,
                                                const std::string& commands,
                                                int replies) {
  const auto reply = connection_->TrySend(commands) ? ReadReply(replies) : std::nullopt;
  if (!reply) {
    Lose(requests);
  }
  return reply;
}

std::optional<std::string> TubeClient::ReadReply(int of) {
  std::string reply;
  for (int n = 0; n < of; ++n) {
    reply = connection_->Read();
    if (!reply.ends_with("\r\n") || reply == "INTERNAL_ERROR\r\n") {
      return std::nullopt;
    }
  }
  return reply;
}

void TubeClient::Connect() {
  // With the old connection every reservation ends, also when the daemon goes on, and no answer
  // says so.
  std::vector<uint64_t> ended;
  for (auto* reserved : {&held_, &forgotten_}) {
    for (const Held& held : std::exchange(*reserved, {})) {
      ended.push_back(history_.Invoke("nack", {ReservationEntry(held.id, held.token)}));
      Remember(&old_, held);
    }
  }
  connection_.reset();
  for (const uint64_t request : ended) {
    history_.Unknown(request);
  }
  const std::string greeting = Crlf("watch a") + Crlf("watch b") + Crlf("ignore default");
  while (!stopping_()) {
    auto connection = test::BeanstalkClient::TryUnix(options_.server);
    if (connection && connection->TrySend(greeting) && connection->Read() == "WATCHING 2\r\n" &&
        connection->Read() == "WATCHING 3\r\n" && connection->Read() == "WATCHING 2\r\n") {
      connection_.emplace(std::move(*connection));
      return;
    }
    ::poll(nullptr, 0, 3);
  }
}

}  // namespace delayd::storm
