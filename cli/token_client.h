// cli/token_client.h — a client that shows the token in a file, and looks there for another one
// when it is refused.
//
// What:    tokens are changed on both sides while workers run for months. After an answer of 401
// the
//          file is read again and, if it holds another token, the request is sent once more: what
//          was refused so was never begun.
// Errors:  as the client's. Where the file cannot be used then, the refusal stands.
// Threads: as the client.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "protocol/client.h"

namespace delayd::cli {

StatusOr<std::unique_ptr<protocol::Client>> ShowTokenOf(const std::string& file,
                                                        std::unique_ptr<protocol::Client> client);

}  // namespace delayd::cli
