#include "protocol/base64.h"

#include <gtest/gtest.h>

#include "tests/unit/protocol/seeded.h"

namespace delayd::protocol {
namespace {

TEST(Base64Test, EncodesTheVectorsOfTheRfc) {
  const std::pair<const char*, const char*> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : cases) {
    EXPECT_EQ(EncodeBase64(plain), encoded);
    EXPECT_EQ(DecodeBase64(encoded).value(), plain);
  }
}

TEST(Base64Test, AnyBytesComeBack) {
  std::mt19937_64 random = SeededRandom();
  for (int i = 0; i < 1000; ++i) {
    const std::string bytes = RandomBytes(&random, 100);
    EXPECT_EQ(DecodeBase64(EncodeBase64(bytes)).value(), bytes);
  }
}

TEST(Base64Test, TextThatWouldEncodeDifferentlyIsRefused) {
  for (const char* text :
       {"Zg", "Zg=", "Zg===", "Z===", "====", "Zh==", "Zm9=", "Zm 9", "Zm-_", "=Zg=", "Zg==Zg=="}) {
    const auto decoded = DecodeBase64(text);
    ASSERT_FALSE(decoded.ok()) << text;
    EXPECT_EQ(decoded.status().reason(), "invalid_base64");
  }
}

}  // namespace
}  // namespace delayd::protocol
