// tests/support/certificate.h — certificates of a test's own, made when it runs.
//
// What:    an authority of one certificate: it signs itself, for localhost and 127.0.0.1.
// Errors:  DELAYD_CHECK.
// Threads: one.
#pragma once

#include <string>
#include <vector>

namespace delayd::test {

struct CertificateFiles {
  std::string certificate;
  std::string key;  // mode 0600
};

// PEM files DIR/NAME.crt and DIR/NAME.key. `hosts` as in an extension: "DNS:localhost". Valid for
// ten days already, and for so many more; -1: it ended a day ago.
CertificateFiles MakeCertificate(const std::string& dir,
                                 const std::string& name,
                                 const std::string& hosts = "DNS:localhost,IP:127.0.0.1",
                                 int days = 10);

// In place of its key one of another type, RSA.
void ReplaceKeyByRsa(const CertificateFiles& files);

}  // namespace delayd::test
