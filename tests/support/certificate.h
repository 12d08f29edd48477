// tests/support/certificate.h — certificates of a test's own, made when it runs.
//
// What:    an authority of one certificate: it signs itself, for localhost and 127.0.0.1.
// Errors:  DELAYD_CHECK.
// Threads: one.
#pragma once

#include <string>
#include <vector>

namespace delayd::testing {

struct CertificateFiles {
  std::string certificate;
  std::string key;  // mode 0600
};

// PEM files DIR/NAME.crt and DIR/NAME.key. `hosts` as in an extension: "DNS:localhost". It ended a
// day ago when it is not `valid`.
CertificateFiles MakeCertificate(const std::string& dir,
                                 const std::string& name,
                                 const std::string& hosts = "DNS:localhost,IP:127.0.0.1",
                                 bool valid = true);

// In place of its key one of another type, RSA.
void ReplaceKeyByRsa(const CertificateFiles& files);

}  // namespace delayd::testing
