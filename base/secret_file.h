// base/secret_file.h — reads a file with a secret in it: tokens, a key, what signs webhooks.
//
// What:    the whole of a regular file, or of the file that a symbolic link leads to, up to 64 KiB.
//          It is opened once and looked at through the descriptor, so that what was checked is what
//          is read, whatever is put in its place meanwhile. What stands in it is the caller's.
// Errors:  kPermissionDenied: others can read or write it. kInvalidArgument: it is not there, no
//          file, too large, or its disk fails. Each names the file and what to do, and shows
//          nothing of what is in it.
// Threads: any. The daemon waits for nobody; delayctl waits for whoever writes into a pipe.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace delayd {

enum class SecretOf : uint8_t {
  // Whoever may use the daemon's socket is in its group, and must not get its secrets by that: the
  // group must not be able to read it. A pipe is refused: a reload would wait for its writer.
  kDaemon,
  // A user's group may be that of those who share the secret. A pipe is as good as a file:
  // --token-file <(pass show delayd).
  kUser,
};

struct SecretFile {
  SecretOf of = SecretOf::kDaemon;
  std::string what;  // "the token file"
  std::string path;
  std::string cure;   // what to do when it is none: "name one that holds the tokens"
  std::string renew;  // what to do since somebody may have read it: "make new tokens"
};

StatusOr<std::string> ReadSecretFile(const SecretFile& file);

}  // namespace delayd
