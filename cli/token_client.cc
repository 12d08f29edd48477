#include "cli/token_client.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/time.h"
#include "cli/token_file.h"

namespace delayd::cli {
namespace {

class TokenClient final : public protocol::Client {
 public:
  TokenClient(std::string file, std::string token, std::unique_ptr<protocol::Client> client)
      : file_(std::move(file)), client_(std::move(client)) {
    UseToken(std::move(token));
  }

  void UseToken(std::string token) override {
    token_ = token;
    client_->UseToken(std::move(token));
  }

  void UseHeader(std::string_view name, std::string_view value) override {
    client_->UseHeader(name, value);
  }

  void GiveUpWhen(int fd, Millis grace) override { client_->GiveUpWhen(fd, grace); }

  StatusOr<protocol::HttpResponse> Call(std::string_view method,
                                        std::string_view target,
                                        std::string_view content_type,
                                        std::string_view body,
                                        Millis timeout) override {
    StatusOr<protocol::HttpResponse> response =
        client_->Call(method, target, content_type, body, timeout);
    return response.ok() && response->status == 401 && FindsAnother()
               ? client_->Call(method, target, content_type, body, timeout)
               : std::move(response);
  }

 private:
  bool FindsAnother() {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file_, error)) {
      return false;  // a pipe has already given its token
    }
    StatusOr<std::string> token = ReadTokenFile(file_);
    if (!token.ok() || *token == token_) {
      return false;
    }
    UseToken(*std::move(token));
    return true;
  }

  const std::string file_;
  std::string token_;
  const std::unique_ptr<protocol::Client> client_;
};

}  // namespace

std::unique_ptr<protocol::Client> ShowTokenOf(const std::string& file,
                                              const std::string& token,
                                              std::unique_ptr<protocol::Client> client) {
  return std::make_unique<TokenClient>(file, token, std::move(client));
}

}  // namespace delayd::cli
