#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "protocol/beanstalk/client.h"
#include "protocol/connection.h"

namespace delayd::beanstalk {
namespace {

using ::testing::HasSubstr;

constexpr Millis kPatient{60'000};

Status Refused(const std::string& address) {
  return Client::Connect(address, kPatient).status();
}

TEST(BeanstalkClientTest, WhyTheServerCannotBeReachedIsSaid) {
  EXPECT_EQ(Refused("127.0.0.1:1").message(),
            "cannot reach beanstalkd at 127.0.0.1:1: nothing listens there; is it running there?");
  EXPECT_EQ(Refused("127.0.0.1:1").reason(), "unreachable");
  EXPECT_THAT(Refused("unix:/nonexistent/b.sock").message(), HasSubstr("there is no such socket"));
  EXPECT_THAT(Refused(std::string(300, 'x') + ":1").message(), HasSubstr("; check the host name"));
  EXPECT_EQ(Refused("localhost").reason(), "invalid_server");
}

TEST(BeanstalkClientTest, APathThatIsTooLongForASocketIsRefused) {
  EXPECT_THAT(Refused("unix:/" + std::string(300, 'x')).message(), HasSubstr("at most 107"));
  protocol::ServerAddress address;
  address.path = std::string(5000, 'x');
  EXPECT_EQ(protocol::Connection().Open(address, SystemClock().Sample().boot).reason(),
            "unreachable")
      << "whoever parsed it";
}

}  // namespace
}  // namespace delayd::beanstalk
