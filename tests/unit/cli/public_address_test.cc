#include "cli/public_address.h"

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

namespace delayd::cli {
namespace {

bool IsPublic(const std::string& text) {
  sockaddr_storage storage{};
  sockaddr_in in{};
  sockaddr_in6 in6{};
  if (inet_pton(AF_INET, text.c_str(), &in.sin_addr) == 1) {
    in.sin_family = AF_INET;
    std::memcpy(&storage, &in, sizeof in);
  } else if (inet_pton(AF_INET6, text.c_str(), &in6.sin6_addr) == 1) {
    in6.sin6_family = AF_INET6;
    std::memcpy(&storage, &in6, sizeof in6);
  } else {
    ADD_FAILURE() << text << " is no address";
  }
  return IsPublicAddress(reinterpret_cast<const sockaddr*>(&storage));
}

TEST(PublicAddressTest, AddressesOfTheInternetArePublic) {
  for (const char* text : {"1.1.1.1",
                           "9.255.255.255",
                           "11.0.0.0",
                           "100.63.255.255",
                           "100.128.0.0",
                           "172.15.255.255",
                           "172.32.0.0",
                           "192.167.255.255",
                           "223.255.255.255",
                           "2606:4700:4700::1111",
                           "2001:4860:4860::8888",
                           "::ffff:1.1.1.1",
                           "64:ff9b::1.1.1.1"}) {
    EXPECT_TRUE(IsPublic(text)) << text;
  }
}

TEST(PublicAddressTest, WhatIsInsideIsNotPublic) {
  for (const char* text : {"0.0.0.0",
                           "10.1.2.3",
                           "100.64.0.1",
                           "127.0.0.1",
                           "127.255.255.255",
                           "169.254.169.254",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.0.0.1",
                           "192.168.1.1",
                           "198.19.255.255",
                           "203.0.113.9",
                           "224.0.0.1",
                           "240.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "fe80::1",
                           "fc00::1",
                           "fd12::1",
                           "ff02::1",
                           "2001:db8::1",
                           "2001:0:1::1"}) {
    EXPECT_FALSE(IsPublic(text)) << text;
  }
}

TEST(PublicAddressTest, AnIPv4AddressInsideOfAnIPv6OneIsJudgedItself) {
  for (const char* text :
       {"::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::10.0.0.1", "2002:7f00:1::"}) {
    EXPECT_FALSE(IsPublic(text)) << text;
  }
}

TEST(PublicAddressTest, OtherFamiliesAreNotPublic) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  EXPECT_FALSE(IsPublicAddress(reinterpret_cast<const sockaddr*>(&address)));
}

}  // namespace
}  // namespace delayd::cli
