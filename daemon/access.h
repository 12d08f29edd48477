// daemon/access.h — who may do what on the sockets.
//
// What:    a peer of the Unix socket is known by the kernel's word (user and groups); a peer on TCP
//          by a token, if tokens are configured. Both lead to a role, and each route needs one.
// Errors:  a name that the system does not know, a token file that others can read, and a token
//          that is too short are kInvalidArgument or kPermissionDenied with the cure; a name that
//          could not be looked up is kUnavailable.
// Threads: one, that of the sockets, but for the reading of the file.
// Cost:    a few comparisons a connection; tokens are compared in a time that does not depend on
//          where they differ.
// Source:  unix(7), SO_PEERCRED and SO_PEERGROUPS; docs/decisions/0076-who-may-do-what.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace delayd {

// Each may do what those before it may.
enum class Role : uint8_t {
  kNone,
  kRead,     // look at everything, payloads included
  kEnqueue,  // and change jobs: enqueue, cancel, lease, ack, ...
  kAdmin,    // and change what concerns all: verify, backup, the clock
};

std::string_view RoleName(Role role);  // "none", "read", "enqueue", "admin"
std::optional<Role> ParseRole(std::string_view text);

// Who asks, once that is known.
struct Caller {
  Role role = Role::kNone;
  std::string user;  // "uid:1000", "token:NAME", or "tcp" where neither is known
};

// Whose quota the jobs of a caller count against, and how many it allows.
struct Quota {
  std::string user;       // empty: nobody's
  uint64_t jobs_max = 0;  // 0: any number
};

// `user_jobs_max`: what a user may have stored; 0: nothing is counted. An admin's jobs are counted,
// but not limited.
Quota QuotaOf(const Caller& caller, uint64_t user_jobs_max);

// Who is at the other end, as far as the kernel tells.
struct Peer {
  bool known = false;  // false: TCP, or a kernel that does not tell
  uint32_t uid = 0;
  std::vector<uint32_t> groups;  // the primary one too
  std::string address = {};      // of one who is not known, for the log: "127.0.0.1:4711"
};

// Of a connected socket.
Peer ReadPeer(int fd);

struct AccessOptions {
  // Lists such as "alice, 1001, @ops": users, and groups behind '@'.
  std::string read;
  std::string enqueue;
  std::string admin;
  Role others = Role::kEnqueue;  // who is in no list, and yet can open a socket
  std::string token_file;        // empty: no tokens
};

class Access {
 public:
  struct Token {
    std::string text;
    Caller caller;
  };

  using Tokens = std::vector<Token>;

  // The owner of this process and root are always kAdmin.
  static StatusOr<Access> Create(const AccessOptions& options);

  // What the token file says now; none where no file is named. On any thread.
  StatusOr<Tokens> ReadTokens() const;

  // Who has a token that is not among them is nobody from its next request on.
  void SetTokens(Tokens tokens) { tokens_ = std::move(tokens); }

  // By what the kernel says. Nobody is more than kEnqueue whom it does not know.
  Role RoleOf(const Peer& peer) const;
  static std::string UserOf(const Peer& peer);

  bool has_tokens() const { return !tokens_.empty(); }

  // None: no such token.
  std::optional<Caller> CallerOfToken(std::string_view token) const;

 private:
  struct Members {
    Role role{};
    std::vector<uint32_t> users;
    std::vector<uint32_t> groups;
  };

  static StatusOr<Token> ReadTokenLine(std::string_view line, const std::string& where);

  std::vector<Members> members_;
  std::string token_file_;  // empty: none
  Tokens tokens_;
  Role others_ = Role::kEnqueue;
};

}  // namespace delayd
