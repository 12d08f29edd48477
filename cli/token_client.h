// cli/token_client.h — a client that sends the token in a file, and reads the file again when the
// token is refused.
//
// What:    tokens change on both sides while workers run for months. After a 401 the file is read
//          again and, if it holds another token, the request is sent once more: a request refused
//          with 401 was never begun.
// Errors:  the client's. If the file cannot be used then, the refusal stands.
// Threads: as for the client.
#pragma once

#include <memory>
#include <string>

#include "protocol/client.h"

namespace delayd::cli {

// `token`: what was read from `file`, once for all clients of a command, since a pipe gives it
// once.
std::unique_ptr<protocol::Client> ShowTokenOf(const std::string& file,
                                              const std::string& token,
                                              std::unique_ptr<protocol::Client> client);

}  // namespace delayd::cli
