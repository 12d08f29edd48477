#include "cli/token_file.h"

#include <algorithm>

#include "base/secret_file.h"

namespace delayd::cli {

StatusOr<std::string> ReadTokenFile(const std::string& path) {
  DELAYD_ASSIGN_OR_RETURN(
      std::string token,
      ReadSecretFile({.of = SecretOf::kUser,
                      .what = "the token file",
                      .path = path,
                      .cure = "name one that holds the token, or leave --token-file and "
                              "DELAYCTL_TOKEN_FILE out where no token is needed",
                      .renew = "have a new token made"}));
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  token.erase(token.find_last_not_of(kBlanks) + 1);
  token.erase(0, token.find_first_not_of(kBlanks));
  const bool printable =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (token.empty() || !printable) {
    return InvalidArgument("the token file " + path + " must hold one token and nothing else");
  }
  return token;
}

}  // namespace delayd::cli
