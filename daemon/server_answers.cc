// The way of answers from the engine to the clients, and what then happens to each connection.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/crash_point.h"
#include "daemon/log.h"
#include "daemon/server_loop.h"

namespace delayd {

void Server::Loop::DeliverReplies() {
  std::vector<engine::Reply> replies = engine_->TakeReplies();
  for (engine::Reply& reply : replies) {
    DeliverReply(&reply);
  }
  unsent_ = unsent_ || !replies.empty();
}

void Server::Loop::SendReady() {
  DeliverReplies();
  if (!std::exchange(unsent_, false)) {
    return;
  }
  for (const ConnectionPtr& connection : touched_) {
    connection->Write();  // FinishOne sees the outcome at the end of the turn
  }
}

void Server::Loop::DeliverReply(engine::Reply* reply) {
  const auto found = pending_.find(reply->request);
  if (found == pending_.end()) {
    return;  // its client has gone
  }
  const Pending pending = std::move(found->second);
  pending_.erase(found);
  if (auto* stats = std::get_if<Indirect<engine::StatsView>>(&reply->body);
      stats != nullptr && options_.trusted_clock != nullptr) {
    (*stats)->clock = engine::ClockStateName(options_.trusted_clock->state());
  }
  // Mostly the first entry.
  std::vector<engine::RequestId>& waiting = pending.connection->pending;
  const auto at = std::ranges::find(waiting, reply->request);
  DELAYD_CHECK(at != waiting.end());
  waiting.erase(at);
  pending.connection->leases -= pending.is_lease ? 1U : 0U;
  NoteDamage(reply->status);
  DELAYD_CRASH_POINT("server/before_reply");
  pending.connection->session().Answer(pending.tag, *reply);
  Touch(pending.connection);
}

void Server::Loop::FinishTouched(const Now& now) {
  // A copy: connections that are still held back are touched again, for the next turn.
  std::vector<ConnectionPtr> touched;
  touched.swap(touched_);
  unsent_ = false;
  for (const ConnectionPtr& connection : touched) {
    connection->touched = false;
    if (FinishOne(connection, now)) {
      Touch(connection);
    }
  }
}

// Sends output, then waits for more or drops the connection. True: look at it again next turn.
bool Server::Loop::FinishOne(const ConnectionPtr& connection, const Now& now) {
  if (connection->input_ended() && !connection->held_back && !connection->unserved) {
    // The client asks nothing more, so it gets the jobs that are ready now and waits for no others.
    EndWaits(*connection, now);
  }
  DELAYD_CRASH_POINT("server/before_send");
  const bool all_sent = connection->Write();
  DELAYD_CRASH_POINT("server/after_send");
  if (connection->hung_up()) {
    GiveUpUntold(connection.get(), now);  // the write may have told it
  }
  Session& session = connection->session();
  // Of a client that has hung up, more may be in the socket than the session knows of.
  const bool is_read = connection->input_ended() || !connection->hung_up();
  const bool done = session.finished() && all_sent && is_read;
  if (connection->gone() || (done && (connection->input_ended() || stopping_))) {
    Drop(connection, now);
    return false;
  }
  if (done) {
    Leave(connection.get(), now);
    connection->BeginLinger(now.boot);
  }
  if (!all_sent) {
    connection->ArmWrite(on_writable_);
  }
  NoteHeld(connection.get(), session.held_bytes());
  connection->NoteTime(now.boot);
  QueueDeadline(connection);
  if (waits_for_room(session)) {
    return true;  // the commit that makes room wakes us
  }
  const bool wants_input = session.wants_input();
  if (wants_input) {
    connection->ArmRead(on_readable_);
  } else {
    connection->ArmHangup(on_hangup_);
  }
  // The session's buffer may hold whole requests, and no further byte may arrive to wake us. If the
  // session has no room for them, an answer or a read by the client makes room and touches the
  // connection.
  const bool again =
      session.has_more() || (wants_input && connection->held_back) || connection->unserved;
  turn_again_ = turn_again_ || again;
  return again;
}

bool Server::Loop::waits_for_room(const Session& session) const {
  return under_pressure() && session.waits_for_room();
}

// Damage in a table that only requests read is not an incident of the engine, so without this only
// the client would learn of it.
void Server::Loop::NoteDamage(const Status& answer) {
  if (answer.code() != StatusCode::kDataLoss || answer.reason() != "damaged_store") {
    return;
  }
  if (damage_told_.IsDue(clock_->Sample().boot)) {
    log::Error("a request met damage in the store", {{"detail", answer.message()}});
  }
}

Status Server::Loop::FailAll(Status cause) {
  log::Error("storage failed; the daemon ends and does not go on in memory",
             {{"code", cause.reason()}, {"detail", cause.message()}});
  boost::unordered_flat_map<engine::RequestId, Pending> pending;
  pending.swap(pending_);
  for (const auto& [id, request] : pending) {
    engine::Reply reply;
    reply.request = id;
    reply.status =
        request.changes
            ? Unknown(
                  "the daemon's storage failed while it wrote this change; it may have "
                  "happened, once: look the job up when the daemon is back",
                  "outcome_unknown")
            : Unavailable("the daemon's storage failed; ask again when the daemon is back");
    request.connection->pending.clear();
    request.connection->session().Answer(request.tag, reply);
    Touch(request.connection);
  }
  for (const ConnectionPtr& connection : touched_) {
    connection->Write();
    connection->Close();
  }
  return cause;
}

}  // namespace delayd
