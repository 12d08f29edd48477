#include "tests/support/certificate.h"

#include <cstdio>
#include <memory>

#include "base/check.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

namespace delayd::test {
namespace {

constexpr long kDaySeconds = 86'400;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File Open(const std::string& path) {
  File file(std::fopen(path.c_str(), "w"), std::fclose);
  DELAYD_CHECK(file != nullptr);
  return file;
}

void Extend(X509* certificate, int nid, const std::string& value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
  DELAYD_CHECK(extension != nullptr);
  DELAYD_CHECK(X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

}  // namespace

CertificateFiles MakeCertificate(const std::string& dir,
                                 const std::string& name,
                                 const std::string& hosts,
                                 int days) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(X509_new(), X509_free);
  DELAYD_CHECK(key != nullptr && certificate != nullptr);
  X509* raw = certificate.get();
  X509_set_version(raw, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(raw), 1);
  X509_gmtime_adj(X509_getm_notBefore(raw), -10 * kDaySeconds);
  X509_gmtime_adj(X509_getm_notAfter(raw), days * kDaySeconds);
  X509_set_pubkey(raw, key.get());
  const std::string common_name = "delayd test " + name;
  X509_NAME* subject = X509_get_subject_name(raw);
  X509_NAME_add_entry_by_txt(subject,
                             "CN",
                             MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()),
                             -1,
                             -1,
                             0);
  X509_set_issuer_name(raw, subject);
  Extend(raw, NID_basic_constraints, "critical,CA:TRUE");
  Extend(raw, NID_subject_alt_name, hosts);
  DELAYD_CHECK(X509_sign(raw, key.get(), EVP_sha256()) != 0);

  const CertificateFiles files{.certificate = dir + "/" + name + ".crt",
                               .key = dir + "/" + name + ".key"};
  DELAYD_CHECK(PEM_write_X509(Open(files.certificate).get(), raw) == 1);
  const File key_file = Open(files.key);
  DELAYD_CHECK(::chmod(files.key.c_str(), 0600) == 0);
  DELAYD_CHECK(
      PEM_write_PrivateKey(key_file.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return files;
}

void ReplaceKeyByRsa(const CertificateFiles& files) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_RSA_gen(2048), EVP_PKEY_free);
  const File key_file = Open(files.key);
  DELAYD_CHECK(
      PEM_write_PrivateKey(key_file.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
}

}  // namespace delayd::test
