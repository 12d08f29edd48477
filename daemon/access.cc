#include "daemon/access.h"

#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <system_error>

#include "base/errno_text.h"
#include "base/secret_file.h"
#include "base/unique_fd.h"
#include "protocol/nearest.h"

#include <sys/socket.h>

namespace delayd {

namespace {

using protocol::Quoted;

constexpr size_t kTokenBytesMin = 16;
constexpr size_t kTokenBytesMax = 512;
constexpr size_t kTokenNameBytesMax = 64;
constexpr std::array<std::pair<std::string_view, Role>, 4> kRoles = {{{"none", Role::kNone},
                                                                      {"read", Role::kRead},
                                                                      {"enqueue", Role::kEnqueue},
                                                                      {"admin", Role::kAdmin}}};

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Takes the next word; `rest` then begins at the one after it.
std::string_view TakeWord(std::string_view* rest) {
  const size_t end = std::min(rest->find_first_of(" \t"), rest->size());
  const std::string_view word = rest->substr(0, end);
  *rest = Trim(rest->substr(end));
  return word;
}

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

std::optional<uint32_t> ParseNumber(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                  : std::nullopt;
}

// Why the file cannot be opened, as an errno value; 0: it can be opened.
int ErrorOfOpening(const char* path) {
  return UniqueFd(::open(path, O_RDONLY | O_CLOEXEC)).valid() ? 0 : errno;
}

// getpwnam_r or getgrnam_r. None: the system knows no such name.
template <typename Entry>
using Lookup = int (*)(const char* name, Entry* entry, char* buffer, size_t bytes, Entry** found);

template <typename Entry>
StatusOr<std::optional<uint32_t>> IdOf(const std::string& name,
                                       Lookup<Entry> lookup,
                                       uint32_t Entry::*id,
                                       const char* file) {
  constexpr size_t kBytesMax = size_t{16} << 20;  // an entry of a group lists all its members
  for (std::vector<char> buffer(1024);; buffer.resize(2 * buffer.size())) {
    Entry entry{};
    Entry* found = nullptr;
    int error = lookup(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
    if (error == ERANGE && buffer.size() < kBytesMax) {
      continue;
    }
    if (error == 0 && found == nullptr) {
      error = ErrorOfOpening(file);  // another name service, such as systemd's, may hide that error
    }
    if (error == 0 || error == ENOENT || error == ESRCH) {
      return found != nullptr ? std::optional(entry.*id) : std::nullopt;
    }
    // For example, a name service that is not up yet during boot.
    return Unavailable("cannot look up " + Quoted(name) + ": " + ErrnoText(error) +
                       "; look at what passwd and group stand for in /etc/nsswitch.conf, or write "
                       "the number");
  }
}

StatusOr<uint32_t> UserId(const std::string& name) {
  if (const std::optional<uint32_t> number = ParseNumber(name)) {
    return *number;
  }
  DELAYD_ASSIGN_OR_RETURN(const auto user,
                          IdOf<passwd>(name, ::getpwnam_r, &passwd::pw_uid, "/etc/passwd"));
  if (!user) {
    return InvalidArgument("there is no user " + Quoted(name) +
                           " on this machine; write '@' before the name of a group");
  }
  return *user;
}

StatusOr<uint32_t> GroupId(const std::string& name) {
  if (const std::optional<uint32_t> number = ParseNumber(name)) {
    return *number;
  }
  DELAYD_ASSIGN_OR_RETURN(const auto found,
                          IdOf<group>(name, ::getgrnam_r, &group::gr_gid, "/etc/group"));
  if (!found) {
    return InvalidArgument("there is no group " + Quoted(name) + " on this machine");
  }
  return *found;
}

// Takes the same time wherever the two differ, and whether they are of one length. By words: a
// reload compares each request that waits with each token.
bool SameInConstantTime(std::string_view a, std::string_view b) {
  const bool is_as_long = a.size() == b.size();
  const std::string_view other = is_as_long ? a : b;
  uint64_t difference = is_as_long ? 0 : 1;
  size_t i = 0;
  for (; i + sizeof(uint64_t) <= b.size(); i += sizeof(uint64_t)) {
    uint64_t x = 0;
    uint64_t y = 0;
    std::memcpy(&x, other.data() + i, sizeof x);
    std::memcpy(&y, b.data() + i, sizeof y);
    difference |= x ^ y;
  }
  for (; i < b.size(); ++i) {
    difference |= static_cast<uint64_t>(other[i] != b[i]);
  }
  return difference == 0;
}

}  // namespace

std::string_view RoleName(Role role) {
  return kRoles[static_cast<size_t>(role)].first;
}

std::optional<Role> ParseRole(std::string_view text) {
  for (const auto& [name, role] : kRoles) {
    if (name == text) {
      return role;
    }
  }
  return std::nullopt;
}

namespace {

std::string AddressOfPeer(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::getpeername(fd, any, &size) != 0 || address.ss_family == AF_UNIX ||
      ::getnameinfo(any,
                    size,
                    host.data(),
                    host.size(),
                    port.data(),
                    port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "unknown";
  }
  const std::string name(host.data());
  return (address.ss_family == AF_INET6 ? "[" + name + "]" : name) + ":" + port.data();
}

}  // namespace

Peer ReadPeer(int fd) {
  Peer peer;
  ucred who{};
  socklen_t size = sizeof who;
  // On TCP the call succeeds and reports no user.
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 ||
      who.uid == static_cast<uid_t>(-1)) {
    peer.address = AddressOfPeer(fd);
    return peer;
  }
  peer.known = true;
  peer.uid = who.uid;
  peer.groups.resize(64);
  size = static_cast<socklen_t>(peer.groups.size() * sizeof(uint32_t));
  int result = ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, peer.groups.data(), &size);
  if (result != 0 && errno == ERANGE) {  // `size` says how many there are
    peer.groups.resize(size / sizeof(uint32_t));
    result = ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, peer.groups.data(), &size);
  }
  peer.groups.resize(result == 0 ? size / sizeof(uint32_t) : 0);
  peer.groups.push_back(who.gid);
  return peer;
}

StatusOr<Access> Access::Create(const AccessOptions& options, const PlaceOf& place_of) {
  Access access;
  access.others_ = options.others;
  access.members_.push_back({.role = Role::kAdmin, .users = {0, uint32_t{::geteuid()}}});
  for (const auto& [role, list] : {std::pair(Role::kAdmin, &options.admin),
                                   std::pair(Role::kEnqueue, &options.enqueue),
                                   std::pair(Role::kRead, &options.read)}) {
    Members members{.role = role};
    std::string_view rest = *list;
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(','), rest.size());
      const std::string name(Trim(rest.substr(0, comma)));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      if (name.empty()) {
        continue;
      }
      const bool is_group = name[0] == '@';
      const StatusOr<uint32_t> id = is_group ? GroupId(name.substr(1)) : UserId(name);
      if (!id.ok()) {
        return id.status().WithContext(place_of("access." + std::string(RoleName(role))));
      }
      (is_group ? members.groups : members.users).push_back(*id);
    }
    access.members_.push_back(std::move(members));
  }
  access.token_file_ = options.token_file;
  DELAYD_ASSIGN_OR_RETURN(access.tokens_, access.ReadTokens(place_of));
  return access;
}

StatusOr<Access::Tokens> Access::ReadTokens(const PlaceOf& place_of) const {
  if (token_file_.empty()) {
    return Tokens();
  }
  StatusOr<Tokens> tokens = ReadTokenFile();
  if (!tokens.ok()) {
    return tokens.status().WithContext(place_of("access.token_file"));
  }
  return tokens;
}

// Lines such as "admin 6f1c0b... alice": a role, a token, and its holder. '#' begins a comment.
StatusOr<Access::Tokens> Access::ReadTokenFile() const {
  Tokens tokens;
  DELAYD_ASSIGN_OR_RETURN(
      const std::string text,
      ReadSecretFile({.of = SecretOf::kDaemon,
                      .what = "the token file",
                      .path = token_file_,
                      .cure = "name one that holds the tokens, or set no token file",
                      .renew = "make new tokens"}));
  std::string_view rest = text;
  for (size_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = Trim(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.empty() && line[0] != '#') {
      const std::string where = token_file_ + ":" + std::to_string(number);
      DELAYD_ASSIGN_OR_RETURN(Token token, ReadTokenLine(line, where));
      // Only one of the two lines could take effect, and the author of the other would rely on it.
      if (std::ranges::find(tokens, token.text, &Token::text) != tokens.end()) {
        return InvalidArgument(where + ": this token stands in a line before; keep one of them");
      }
      tokens.push_back(std::move(token));
    }
  }
  if (tokens.empty()) {
    return InvalidArgument("the token file " + token_file_ +
                           " has no token; write lines such as 'read TOKEN', or set no token file");
  }
  return tokens;
}

// Its error messages must not show anything that may be a token.
StatusOr<Access::Token> Access::ReadTokenLine(std::string_view line, const std::string& where) {
  std::string_view rest = line;
  const std::string_view role_name = TakeWord(&rest);
  const std::optional<Role> role = ParseRole(role_name);
  const std::string_view token = TakeWord(&rest);
  const std::string_view given_name = TakeWord(&rest);
  const std::string_view name = given_name.empty() ? role_name : given_name;
  if (!role || *role == Role::kNone) {
    return InvalidArgument(
        where + ": a line is a role (read, enqueue or admin), a token, and perhaps a name");
  }
  const bool printable =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (token.size() < kTokenBytesMin || token.size() > kTokenBytesMax || !printable) {
    return InvalidArgument(where + ": a token has 16 to 512 printable characters without blanks; " +
                           "'openssl rand -hex 32' makes a good one");
  }
  const bool is_name = name.size() <= kTokenNameBytesMax && std::ranges::all_of(name, IsNameByte);
  if (!is_name || !rest.empty()) {
    return InvalidArgument(where +
                           ": the name behind a token has 1 to 64 letters, digits, '.', '_' or "
                           "'-', and nothing follows it");
  }
  return Token{.text = std::string(token),
               .caller = {.role = *role, .user = "token:" + std::string(name)}};
}

Quota QuotaOf(const Caller& caller, uint64_t user_jobs_max) {
  if (user_jobs_max == 0) {
    return {};
  }
  return {.user = caller.user, .jobs_max = caller.role == Role::kAdmin ? 0 : user_jobs_max};
}

Role Access::RoleOf(const Peer& peer) const {
  if (!peer.known) {
    return std::min(others_, Role::kEnqueue);
  }
  for (const Members& members : members_) {  // the highest role first
    const bool is_member =
        std::find(members.users.begin(), members.users.end(), peer.uid) != members.users.end() ||
        std::find_first_of(
            peer.groups.begin(), peer.groups.end(), members.groups.begin(), members.groups.end()) !=
            peer.groups.end();
    if (is_member) {
      return members.role;
    }
  }
  return others_;
}

std::string Access::UserOf(const Peer& peer) {
  return peer.known ? "uid:" + std::to_string(peer.uid) : "tcp";
}

std::optional<Caller> Access::CallerOfToken(std::string_view token) const {
  const Token* found = nullptr;
  for (const Token& known : tokens_) {  // all of them: the time must not reveal which one matched
    if (SameInConstantTime(token, known.text)) {
      found = &known;
    }
  }
  return found != nullptr ? std::optional(found->caller) : std::nullopt;
}

}  // namespace delayd
