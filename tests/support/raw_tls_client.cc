#include "tests/support/raw_tls_client.h"

#include <array>

#include "base/check.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>

namespace delayd::test {
namespace {

constexpr size_t kTagBytes = 16;

unsigned char* Bytes(std::string* text) {
  return reinterpret_cast<unsigned char*>(text->data());
}

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// "CLIENT_TRAFFIC_SECRET_0 random secret", in hexadecimal digits.
void KeepSecret(const SSL* ssl, const char* line) {
  const std::string_view text(line);
  if (text.starts_with("CLIENT_TRAFFIC_SECRET_0 ")) {
    auto* secret = static_cast<std::string*>(SSL_get_app_data(ssl));
    for (size_t at = text.rfind(' ') + 1; at < text.size(); at += 2) {
      secret->push_back(static_cast<char>(std::stoi(std::string(text.substr(at, 2)), nullptr, 16)));
    }
  }
}

}  // namespace

RawTlsClient::RawTlsClient() {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  DELAYD_CHECK(context != nullptr);
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  DELAYD_CHECK(SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1);
  SSL_CTX_set_keylog_callback(context, KeepSecret);
  ssl_ = SSL_new(context);
  SSL_CTX_free(context);
  DELAYD_CHECK(ssl_ != nullptr);
  SSL_set_app_data(ssl_, &secret_);
  SSL_set_bio(ssl_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_connect_state(ssl_);
}

RawTlsClient::~RawTlsClient() {
  SSL_free(ssl_);
}

bool RawTlsClient::established() const {
  return !secret_.empty() && SSL_is_init_finished(ssl_) == 1;
}

std::string RawTlsClient::Exchange(std::string_view from_server) {
  BIO_write(SSL_get_rbio(ssl_), from_server.data(), static_cast<int>(from_server.size()));
  std::array<char, 4096> buffer{};
  for (int got = 0; (got = SSL_read(ssl_, buffer.data(), buffer.size())) > 0;) {
    heard_.append(buffer.data(), static_cast<size_t>(got));
  }
  std::string answer(BIO_ctrl_pending(SSL_get_wbio(ssl_)), '\0');
  if (!answer.empty()) {
    BIO_read(SSL_get_wbio(ssl_), answer.data(), static_cast<int>(answer.size()));
  }
  return answer;
}

std::string RawTlsClient::Derive(std::string_view label, uint8_t bytes) const {
  const std::string full = "tls13 " + std::string(label);
  std::string info{'\0', static_cast<char>(bytes), static_cast<char>(full.size())};
  info += full;
  info += std::string_view("\0\1", 2);  // no context; the first block of HKDF-Expand
  std::string block(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  DELAYD_CHECK(HMAC(EVP_sha256(),
                    secret_.data(),
                    static_cast<int>(secret_.size()),
                    Bytes(std::string_view(info)),
                    info.size(),
                    Bytes(&block),
                    &size) != nullptr);
  return block.substr(0, bytes);
}

std::string RawTlsClient::Record(Type type, std::string_view content) {
  DELAYD_CHECK(established());
  std::string plain(content);
  plain += static_cast<char>(type);
  const size_t size = plain.size() + kTagBytes;
  const std::string head = {
      '\x17', '\x03', '\x03', static_cast<char>(size >> 8), static_cast<char>(size & 0xff)};
  std::string nonce = Derive("iv", 12);
  for (size_t i = 0; i < 8; ++i) {
    nonce[11 - i] = static_cast<char>(nonce[11 - i] ^ static_cast<char>(records_ >> (8 * i)));
  }
  ++records_;
  std::string sealed(size, '\0');
  int written = 0;
  EVP_CIPHER_CTX* cipher = EVP_CIPHER_CTX_new();
  const std::string key = Derive("key", 16);
  const bool done =
      EVP_EncryptInit_ex(cipher,
                         EVP_aes_128_gcm(),
                         nullptr,
                         Bytes(std::string_view(key)),
                         Bytes(std::string_view(nonce))) == 1 &&
      EVP_EncryptUpdate(cipher, nullptr, &written, Bytes(std::string_view(head)), 5) == 1 &&
      EVP_EncryptUpdate(cipher,
                        Bytes(&sealed),
                        &written,
                        Bytes(std::string_view(plain)),
                        static_cast<int>(plain.size())) == 1 &&
      EVP_EncryptFinal_ex(cipher, nullptr, &written) == 1 &&
      EVP_CIPHER_CTX_ctrl(
          cipher, EVP_CTRL_AEAD_GET_TAG, kTagBytes, Bytes(&sealed) + plain.size()) == 1;
  EVP_CIPHER_CTX_free(cipher);
  DELAYD_CHECK(done);
  return head + sealed;
}

}  // namespace delayd::test
