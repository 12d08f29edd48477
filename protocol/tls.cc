#include "protocol/tls.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <memory>

#include "base/check.h"
#include "base/errno_text.h"
#include "base/secret_file.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/sslerr.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

namespace delayd::protocol {
namespace {

// The first error in OpenSSL's queue; empties the queue.
std::string ErrorText() {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  if (ERR_SYSTEM_ERROR(error)) {
    return ErrnoText(ERR_GET_REASON(error));
  }
  const char* reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  return reason == nullptr ? "unknown cause" : reason;
}

// A key with a passphrase must not make a daemon prompt for it on a terminal.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) {
  return -1;
}

StatusOr<SSL_CTX*> NewContext(const SSL_METHOD* method) {
  SSL_CTX* context = SSL_CTX_new(method);
  DELAYD_CHECK(context != nullptr);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // Idle connections keep no buffers.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_default_passwd_cb(context, NoPassphrase);
  // TLS 1.2: only ciphers with forward secrecy and authenticated encryption. 1.3 has no others.
  DELAYD_CHECK(SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1);
  return context;
}

// Like SSL_CTX_use_PrivateKey_file, but from memory.
bool UseKey(SSL_CTX* context, std::string_view pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  DELAYD_CHECK(bio != nullptr);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr), &EVP_PKEY_free);
  return key != nullptr && SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

// Opening a pipe blocks until somebody writes to it, and would hang a start or a reload.
Status CheckNoPipe(const std::string& certificate) {
  struct stat info {};

  if (::stat(certificate.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return InvalidArgument("cannot use the certificate " + certificate + ": it is no regular file");
  }
  return OkStatus();
}

// What to do about a certificate that was refused.
std::string_view CureOf(long verdict) {
  switch (verdict) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "renew it where the daemon runs, then: systemctl reload delayd; or set the clock of "
             "this machine, where that is wrong";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "use the name or address that it is for, or have one made that is for this one too";
    default:
      return "give who signed it with --ca-file";
  }
}

// What to do when the other side has ended the conversation with this alert.
std::string_view CureOfAlert(int reason) {
  switch (reason - SSL_AD_REASON_OFFSET) {
    case SSL_AD_INTERNAL_ERROR:
      return "a daemon with too many connections does so: try again, or raise limits.connections";
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
      return "it does not trust the certificate: tell it who signed that, or renew it";
    case SSL_AD_CERTIFICATE_EXPIRED:
      return "renew the certificate";
    default:
      return "look for the cause there";
  }
}

WallTime TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  DELAYD_CHECK(ASN1_TIME_to_tm(time, &parts) == 1);
  return WallTime(std::chrono::seconds(::timegm(&parts)));
}

}  // namespace

void TlsContext::Free::operator()(ssl_ctx_st* context) const {
  SSL_CTX_free(context);
}

StatusOr<TlsContext::Ptr> TlsContext::ForServer(const std::string& certificate_file,
                                                const std::string& key_file,
                                                bool* is_key) {
  bool unasked = false;
  bool& at_key = is_key != nullptr ? *is_key : unasked;
  at_key = true;
  DELAYD_ASSIGN_OR_RETURN(const std::string key,
                          ReadSecretFile({.of = SecretOf::kDaemon,
                                          .what = "the key",
                                          .path = key_file,
                                          .cure = "name a PEM file with the key alone",
                                          .renew = "make a new one"}));
  at_key = false;
  DELAYD_RETURN_IF_ERROR(CheckNoPipe(certificate_file));
  DELAYD_ASSIGN_OR_RETURN(SSL_CTX * raw, NewContext(TLS_server_method()));
  const Ptr context(new TlsContext(raw));
  SSL_CTX_set_options(raw, SSL_OP_CIPHER_SERVER_PREFERENCE);
  if (SSL_CTX_use_certificate_chain_file(raw, certificate_file.c_str()) != 1) {
    return InvalidArgument("cannot use the certificate " + certificate_file + ": " + ErrorText() +
                           "; it must be a readable PEM file, its chain behind it");
  }
  at_key = true;
  // The check is needed: OpenSSL silently accepts a key of another type than the certificate's.
  if (!UseKey(raw, key) || SSL_CTX_check_private_key(raw) != 1) {
    return InvalidArgument("cannot use the key " + key_file + ": " + ErrorText() +
                           "; it must be a readable PEM file without a passphrase, and belong to "
                           "the certificate " +
                           certificate_file);
  }
  return context;
}

WallTime TlsContext::certificate_begin() const {
  const X509* certificate = SSL_CTX_get0_certificate(context_.get());
  DELAYD_CHECK(certificate != nullptr);
  return TimeOf(X509_get0_notBefore(certificate));
}

WallTime TlsContext::certificate_end() const {
  const X509* certificate = SSL_CTX_get0_certificate(context_.get());
  DELAYD_CHECK(certificate != nullptr);
  return TimeOf(X509_get0_notAfter(certificate));
}

StatusOr<TlsContext::Ptr> TlsContext::ForClient(const std::string& ca_file) {
  DELAYD_ASSIGN_OR_RETURN(SSL_CTX * raw, NewContext(TLS_client_method()));
  const Ptr context(new TlsContext(raw));
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
  const int loaded = ca_file.empty() ? SSL_CTX_set_default_verify_paths(raw)
                                     : SSL_CTX_load_verify_file(raw, ca_file.c_str());
  if (loaded != 1) {
    return InvalidArgument("cannot use the authorities in " +
                           (ca_file.empty() ? std::string("the system's store") : ca_file) + ": " +
                           ErrorText() + "; it must be a readable PEM file of certificates");
  }
  return context;
}

void TlsChannel::Free::operator()(ssl_st* ssl) const {
  SSL_free(ssl);
}

TlsChannel::TlsChannel(const TlsContext::Ptr& context) : ssl_(SSL_new(context->context_.get())) {
  DELAYD_CHECK(ssl_ != nullptr);
  in_ = BIO_new(BIO_s_mem());
  out_ = BIO_new(BIO_s_mem());
  DELAYD_CHECK(in_ != nullptr && out_ != nullptr);
  SSL_set_bio(ssl_.get(), in_, out_);
  SSL_set_accept_state(ssl_.get());
}

TlsChannel::TlsChannel(const TlsContext::Ptr& context, const std::string& host)
    : TlsChannel(context) {
  SSL_set_connect_state(ssl_.get());
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str()) != 1) {
    ERR_clear_error();
    SSL_set_hostflags(ssl_.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    DELAYD_CHECK(SSL_set1_host(ssl_.get(), host.c_str()) == 1);
    // SSL_set_tlsext_host_name, spelled out: the macro uses a C-style cast.
    std::string name = host;
    DELAYD_CHECK(
        SSL_ctrl(
            ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data()) == 1);
  }
  failure_ = Handshake();
}

bool TlsChannel::established() const {
  return failure_.ok() && SSL_is_init_finished(ssl_.get()) == 1;
}

Status TlsChannel::Receive(std::string_view bytes, std::string* plain) {
  DELAYD_RETURN_IF_ERROR(failure_);
  if (peer_closed_) {
    return OkStatus();  // OpenSSL reads nothing after close_notify; the bytes would pile up
  }
  DELAYD_CHECK(BIO_write(in_, bytes.data(), static_cast<int>(bytes.size())) ==
               static_cast<int>(bytes.size()));
  if (!established()) {
    failure_ = Handshake();
  }
  if (established()) {
    failure_ = Read(plain);
  }
  return failure_;
}

Status TlsChannel::Handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  Drain();
  if (result == 1 || SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ) {
    return OkStatus();
  }
  return Failure();
}

Status TlsChannel::Read(std::string* plain) {
  std::array<char, size_t{16} * 1024> buffer;  // NOLINT: filled by SSL_read_ex
  for (;;) {
    size_t got = 0;
    ERR_clear_error();
    const int result = SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &got);
    if (result == 1) {
      plain->append(buffer.data(), got);
      continue;
    }
    Drain();
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return OkStatus();
      case SSL_ERROR_ZERO_RETURN:
        peer_closed_ = true;
        return OkStatus();
      default:
        return Failure();
    }
  }
}

Status TlsChannel::Send(std::string_view plain) {
  DELAYD_RETURN_IF_ERROR(failure_);
  if (!established()) {
    return FailedPrecondition("TLS: a handshake is under way; send it behind that");
  }
  size_t written = 0;
  ERR_clear_error();
  // A memory BIO accepts everything, so no write is partial.
  if (!plain.empty() && SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &written) != 1) {
    failure_ = Failure();
    return failure_;
  }
  DELAYD_CHECK(written == plain.size());
  Drain();
  return OkStatus();
}

void TlsChannel::Close() {
  if (established()) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
    Drain();
  }
}

void TlsChannel::Drain() {
  const size_t waiting = BIO_ctrl_pending(out_);
  if (waiting == 0) {
    return;
  }
  std::string& tail = *output_.tail();
  const size_t size = tail.size();
  tail.resize(size + waiting);
  DELAYD_CHECK(BIO_read(out_, tail.data() + size, static_cast<int>(waiting)) ==
               static_cast<int>(waiting));
}

Status TlsChannel::Failure() {
  const long verdict = SSL_get_verify_result(ssl_.get());
  const int reason = ERR_GET_REASON(ERR_peek_error());
  const std::string cause = ErrorText();
  Drain();  // the alert tells the peer why
  if (verdict != X509_V_OK) {
    return Unavailable(
        "its certificate is refused: " + std::string(X509_verify_cert_error_string(verdict)) +
            "; " + std::string(CureOf(verdict)),
        "tls_failed");
  }
  if (reason > SSL_AD_REASON_OFFSET) {
    return Unavailable(
        "the other side ended TLS: " + cause + "; " + std::string(CureOfAlert(reason)),
        "tls_failed");
  }
  return Unavailable("no TLS: " + cause + "; check that it speaks TLS", "tls_failed");
}

}  // namespace delayd::protocol
