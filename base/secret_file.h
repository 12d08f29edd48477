// base/secret_file.h — reads a file that holds a secret: tokens, a private key, a signing key for
// webhooks.
//
// What:    returns the whole of a regular file, or of the file that a symbolic link leads to, up to
//          64 KiB. It is opened once and checked through the descriptor, so that the file that was
//          checked is the one that is read, even if it is replaced meanwhile. The caller interprets
//          the content.
// Errors:  kPermissionDenied: others can read or write the file. kInvalidArgument: it does not
//          exist, is no file, is too large, or its disk fails. Each message names the file and what
//          to do, and reveals nothing of its content.
// Threads: any. The daemon never blocks; delayctl waits for whoever writes into a pipe.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace delayd {

enum class SecretOf : uint8_t {
  // Everybody who may use the daemon's socket is in its group, which must not reveal the secrets:
  // the file must not be readable by the group. A pipe is refused: a reload would wait for its
  // writer.
  kDaemon,
  // A user's group may be the very people who share the secret. A pipe is as good as a file:
  // --token-file <(pass show delayd).
  kUser,
};

struct SecretFile {
  SecretOf of = SecretOf::kDaemon;
  std::string what;  // "the token file"
  std::string path;
  std::string cure;   // what to do if it is no file: "name one that holds the tokens"
  std::string renew;  // what to do because somebody may have read it: "make new tokens"
};

StatusOr<std::string> ReadSecretFile(const SecretFile& file);

}  // namespace delayd
