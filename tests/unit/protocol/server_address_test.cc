#include "protocol/server_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace delayd::protocol {
namespace {

TEST(ServerAddressTest, ReadsAllForms) {
  EXPECT_EQ(ParseServerAddress("unix:/run/delayd/delayd.sock")->path, "/run/delayd/delayd.sock");
  EXPECT_EQ(ParseServerAddress("unix:./var/d.sock")->path, "./var/d.sock");
  const std::pair<const char*, const char*> cases[] = {{"http://127.0.0.1:80", "127.0.0.1:80"},
                                                       {"http://localhost", "localhost:11380"},
                                                       {"http://localhost:1/", "localhost:1"},
                                                       {"http://[::1]:99", "[::1]:99"},
                                                       {"http://[::1]", "[::1]:11380"}};
  for (const auto& [text, host] : cases) {
    const auto address = ParseServerAddress(text);
    ASSERT_TRUE(address.ok()) << address.status().message();
    EXPECT_EQ(HostHeader(*address), host);
  }
  EXPECT_TRUE(ParseServerAddress(kDefaultServer).ok());
  EXPECT_FALSE(ParseServerAddress("http://jobs.example")->tls);
  EXPECT_TRUE(ParseServerAddress("https://jobs.example")->tls);
  EXPECT_EQ(HostHeader(*ParseServerAddress("https://[::1]:99")), "[::1]:99");
}

TEST(ServerAddressTest, RefusesTheRestWithTheCure) {
  const std::pair<const char*, const char*> cases[] = {{"", "is not understood"},
                                                       {"unix:", "has no path"},
                                                       {"/run/d.sock", "write unix:/run/d.sock"},
                                                       {"localhost:80", "is not understood"},
                                                       {"me:pw@localhost:80", "'...@localhost:80'"},
                                                       {"https://", "is not understood"},
                                                       {"http://", "is not understood"},
                                                       {"http://a/b", "has a path or query"},
                                                       {"http://a:80/api", "has a path or query"},
                                                       {"https://a:80?x", "has a path or query"},
                                                       {"https://[::1]:80#x", "a path or query"},
                                                       {"http://me:pw@a:80", "has a user"},
                                                       {"http://me:p/w@a", "has a user"},
                                                       {"http://a:0", "no good port"},
                                                       {"http://a:65536", "no good port"},
                                                       {"http://a:x", "no good port"},
                                                       {"http://[::1", "no ']'"},
                                                       {"http://[::1]x", "no good port"}};
  for (const auto& [text, why] : cases) {
    const auto address = ParseServerAddress(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_THAT(address.status().message(), ::testing::HasSubstr(why));
    EXPECT_THAT(address.status().message(), ::testing::Not(::testing::HasSubstr("me:p")));
  }
  EXPECT_THAT(ParseServerAddress("unix:/" + std::string(200, 'x')).status().message(),
              ::testing::HasSubstr("at most 107"));
}

TEST(ServerAddressTest, ReadsHostAndPortOfWhatSpeaksNoHttp) {
  EXPECT_EQ(HostHeader(*ParseSocketAddress("127.0.0.1:80", "x")), "127.0.0.1:80");
  EXPECT_EQ(HostHeader(*ParseSocketAddress("[::1]:80", "x")), "[::1]:80");
  EXPECT_EQ(ParseSocketAddress("unix:/run/x.sock", "x")->path, "/run/x.sock");
  const std::pair<std::string, const char*> cases[] = {
      {"", "is not understood; write it like 127.0.0.1:11300, [::1]:11300 or unix:"},
      {"localhost", "has no port"},
      {"[::1]", "has no port"},
      {"localhost:", "has no good port"},
      {"::1:80", "is not understood"},
      {"http://localhost:80", "has no good port"},
      {"unix:/" + std::string(5000, 'x'), "at most 107"}};
  for (const auto& [text, why] : cases) {
    EXPECT_THAT(ParseSocketAddress(text, "x").status().message(), ::testing::HasSubstr(why));
  }
}

}  // namespace
}  // namespace delayd::protocol
