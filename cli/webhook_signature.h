// cli/webhook_signature.h — signs a webhook call, so that its receiver knows it is ours and fresh.
//
// What:    HMAC-SHA256 over "ID.TIMESTAMP.BODY" with each secret, newest first, so that a receiver
//          can change its secret without missing a call.
// Errors:  kInvalidArgument "invalid_secret" names the line, never the secret.
// Threads: pure functions.
// Source:  Standard Webhooks, symmetric signatures ("whsec_" secrets, scheme v1).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace delayd::cli {

// The keys in a secrets file: one "whsec_BASE64" of 24 to 64 bytes per line, newest first; empty
// lines and lines that begin with '#' are skipped.
StatusOr<std::vector<std::string>> ParseWebhookSecrets(std::string_view text);

// Reads such a file; refuses it when anyone but its owner and group may read or write it.
StatusOr<std::vector<std::string>> ReadWebhookSecrets(const std::string& path);

// The value of the webhook-signature header: one "v1,BASE64" for each key.
std::string SignWebhook(const std::vector<std::string>& keys,
                        std::string_view id,
                        int64_t unix_seconds,
                        std::string_view body);

}  // namespace delayd::cli
