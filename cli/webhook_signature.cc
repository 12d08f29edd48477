#include "cli/webhook_signature.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/secret_file.h"
#include "protocol/base64.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace delayd::cli {
namespace {

constexpr std::string_view kPrefix = "whsec_";
constexpr size_t kKeyBytesMin = 24;
constexpr size_t kKeyBytesMax = 64;

StatusOr<std::string> ParseSecret(std::string_view line, size_t number) {
  const auto refuse = [&](const std::string& why) {
    return InvalidArgument("line " + std::to_string(number) + " of the webhook secrets " + why +
                               "; write whsec_ and the base64 of 24 to 64 random bytes, for "
                               "example: echo whsec_$(openssl rand -base64 32)",
                           "invalid_secret");
  };
  if (!line.starts_with(kPrefix)) {
    return refuse("does not begin with whsec_");
  }
  StatusOr<std::string> key = protocol::DecodeBase64(line.substr(kPrefix.size()));
  if (!key.ok()) {
    return refuse("is not base64");
  }
  if (key->size() < kKeyBytesMin || key->size() > kKeyBytesMax) {
    return refuse("holds " + std::to_string(key->size()) + " bytes");
  }
  return key;
}

}  // namespace

StatusOr<std::vector<std::string>> ParseWebhookSecrets(std::string_view text) {
  std::vector<std::string> keys;
  for (size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    DELAYD_ASSIGN_OR_RETURN(std::string key, ParseSecret(line, number));
    keys.push_back(std::move(key));
  }
  if (keys.empty()) {
    return InvalidArgument(
        "there is no webhook secret in it; make one with: echo whsec_$(openssl rand -base64 32)",
        "invalid_secret");
  }
  return keys;
}

StatusOr<std::vector<std::string>> ReadWebhookSecrets(const std::string& path) {
  DELAYD_ASSIGN_OR_RETURN(
      const std::string text,
      ReadSecretFile({.of = SecretOf::kUser,
                      .what = "the webhook secrets",
                      .path = path,
                      .cure = "name one that holds the secrets, a line each, and nothing else",
                      .renew = "have new secrets made"}));
  StatusOr<std::vector<std::string>> keys = ParseWebhookSecrets(text);
  if (!keys.ok()) {
    return InvalidArgument(path + ": " + keys.status().message(), "invalid_secret");
  }
  return keys;
}

std::string SignWebhook(const std::vector<std::string>& keys,
                        std::string_view id,
                        int64_t unix_seconds,
                        std::string_view body) {
  std::string content(id);
  content += '.';
  content += std::to_string(unix_seconds);
  content += '.';
  content += body;
  std::string header;
  for (const std::string& key : keys) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    const unsigned char* done = HMAC(EVP_sha256(),
                                     key.data(),
                                     static_cast<int>(key.size()),
                                     reinterpret_cast<const unsigned char*>(content.data()),
                                     content.size(),
                                     digest.data(),
                                     &size);
    DELAYD_CHECK(done != nullptr);
    header += header.empty() ? "v1," : " v1,";
    header += protocol::EncodeBase64(
        std::string_view(reinterpret_cast<const char*>(digest.data()), size));
  }
  return header;
}

}  // namespace delayd::cli
