// Work outside the turn: an operator's commands, reading the files of a reload, and giving memory
// back to the system.
#include <utility>

#include "base/check.h"
#include "daemon/server_loop.h"

#include <boost/asio/post.hpp>

namespace delayd {

namespace {

// Freeing less than this is not worth a look.
constexpr size_t kFreedBytesMin = size_t{8} << 20;
// If clients free more than this during the rest, they are at work and will need the memory again.
constexpr size_t kRestBytesMax = size_t{1} << 20;

}  // namespace

void Server::Loop::StartAdmin(const ConnectionPtr& connection, uint64_t tag, AdminCommand command) {
  if (!options_.admin || stopping_) {
    connection->session().AnswerAdmin(
        tag, Unavailable("this daemon takes no admin commands now; try again when it is back"));
  } else if (admin_client_) {
    connection->session().AnswerAdmin(
        tag,
        FailedPrecondition("another verify or backup is under way; try again when it has ended",
                           "admin_busy"));
  } else {
    admin_client_ = AdminClient{.connection = connection, .tag = tag};
    admin_thread_.Start([this, command = std::move(command)] {
      AdminAnswer answer = options_.admin(command, stop_admin_);
      boost::asio::post(io_, [this, answer = std::move(answer)] { FinishAdmin(answer); });
    });
  }
}

void Server::Loop::FinishAdmin(const AdminAnswer& answer) {
  DELAYD_CHECK(admin_client_.has_value());
  const AdminClient client = *std::exchange(admin_client_, std::nullopt);
  const ConnectionPtr connection = client.connection.lock();
  if (connection != nullptr && !connection->gone()) {
    connection->session().AnswerAdmin(client.tag, answer);
    Touch(connection);
  }
}

// A reload that is requested while one is under way runs after it: that one may have read its files
// already.
void Server::Loop::TendReload(const Now& now) {
  if (stopping_) {
    return;
  }
  if (const ServerOptions::ApplyReload apply = std::exchange(apply_reload_, nullptr)) {
    reload_running_ = false;
    if (std::optional<engine::Configure> settings = apply()) {
      engine_->Execute(next_request_++, *std::move(settings), now);  // nobody waits for the reply
    }
    RefuseForbidden(now);
  }
  if (reload_wanted_ && !reload_running_) {
    reload_wanted_ = false;
    reload_running_ = true;
    options_.reloading();
    reload_thread_.Start([this] {
      ServerOptions::ApplyReload apply = options_.reload();
      boost::asio::post(
          io_, [this, apply = std::move(apply)]() mutable { apply_reload_ = std::move(apply); });
    });
  }
}

// The allocator releases free pages gradually, as memory is allocated. An idle server allocates
// nothing, and would keep for ever the memory that a rush of clients needed.
void Server::Loop::TendMemory(const Now& now) {
  if (!options_.give_back_memory || giving_back_ || freed_bytes_ < kFreedBytesMin ||
      (memory_look_ && now.boot < *memory_look_)) {
    return;
  }
  const size_t since = freed_bytes_ - std::exchange(freed_at_look_, freed_bytes_);
  if (!memory_look_ || since > kRestBytesMax) {
    memory_look_ = now.boot + options_.memory_rest;
    return;
  }
  memory_look_.reset();
  freed_bytes_ = freed_at_look_ = 0;
  giving_back_ = true;
  memory_thread_.Start([this] {
    options_.give_back_memory();
    boost::asio::post(io_, [this] { giving_back_ = false; });
  });
}

}  // namespace delayd
