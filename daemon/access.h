// daemon/access.h — who may do what on the sockets.
//
// What:    the kernel identifies a peer on the Unix socket (user and groups); a token identifies a
//          peer on TCP, if tokens are configured. Both map to a role, and each route requires one.
// Errors:  a name that the system does not know, a token file that others can read, and a token
//          that is too short are kInvalidArgument or kPermissionDenied with the cure; a name that
//          could not be looked up is kUnavailable.
// Threads: the thread of the sockets; only the token file may be read on another.
// Cost:    a few comparisons per connection; comparing tokens takes the same time wherever they
//          differ.
// Source:  unix(7), SO_PEERCRED and SO_PEERGROUPS; docs/decisions/0076-who-may-do-what.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "daemon/place_of.h"

namespace delayd {

// Each role includes those before it.
enum class Role : uint8_t {
  kNone,
  kRead,     // see everything, payloads included
  kEnqueue,  // also change jobs: enqueue, cancel, lease, ack, ...
  kAdmin,    // also act on the whole daemon: verify, backup, the clock
};

std::string_view RoleName(Role role);  // "none", "read", "enqueue", "admin"
std::optional<Role> ParseRole(std::string_view text);

// The client behind a request, once it is identified.
struct Caller {
  Role role = Role::kNone;
  std::string user;  // "uid:1000", "token:NAME", or "tcp" where neither is known
};

// The user a caller's jobs are charged to, and how many jobs that user may have.
struct Quota {
  std::string user;       // empty: charged to nobody
  uint64_t jobs_max = 0;  // 0: any number
};

// `user_jobs_max`: how many jobs a user may have stored; 0: jobs are not counted. An admin's jobs
// are counted but not limited.
Quota QuotaOf(const Caller& caller, uint64_t user_jobs_max);

// The process at the other end, as far as the kernel identifies it.
struct Peer {
  bool known = false;  // false: TCP, or a kernel that does not say
  uint32_t uid = 0;
  std::vector<uint32_t> groups;  // including the primary group
  std::string address = {};      // of an unknown peer, for the log: "127.0.0.1:4711"
};

// The peer of a connected socket.
Peer ReadPeer(int fd);

struct AccessOptions {
  // Lists such as "alice, 1001, @ops": users, and groups after '@'.
  std::string read;
  std::string enqueue;
  std::string admin;
  Role others = Role::kEnqueue;  // of clients that are in no list but can open a socket
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
  static StatusOr<Access> Create(const AccessOptions& options, const PlaceOf& place_of = KeyAlone);

  // The tokens that the file holds now; none if no file is configured. Any thread may call it.
  StatusOr<Tokens> ReadTokens(const PlaceOf& place_of = KeyAlone) const;

  // A client whose token is not in `tokens` is rejected from its next request on; of those that
  // wait, see Session::RefuseForbidden.
  void SetTokens(Tokens tokens) { tokens_ = std::move(tokens); }

  // From the kernel's credentials. A peer unknown to the kernel is at most kEnqueue.
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

  StatusOr<Tokens> ReadTokenFile() const;
  static StatusOr<Token> ReadTokenLine(std::string_view line, const std::string& where);

  std::vector<Members> members_;
  std::string token_file_;  // empty: none
  Tokens tokens_;
  Role others_ = Role::kEnqueue;
};

}  // namespace delayd
