// cli/token_client.h — a client that shows the token in a file, and looks there for another one
// when it is refused.
//
// What:    tokens are changed on both sides while workers run for months. Who is answered 401 reads
//          the file again and, where another token is in it, asks once more: what was refused so
//          was not begun.
// Errors:  as the client's. Of a file that cannot be used then, the refusal.
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
