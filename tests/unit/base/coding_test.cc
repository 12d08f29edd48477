#include "base/coding.h"

#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace delayd {
namespace {

TEST(CodingTest, IntegersSortAsTheirBytesDo) {
  const std::vector<uint64_t> numbers = {
      0, 1, 255, 256, 65'535, uint64_t{1} << 32, std::numeric_limits<uint64_t>::max()};
  std::string last;
  for (const uint64_t number : numbers) {
    std::string bytes;
    AppendU64(&bytes, number);
    EXPECT_GE(bytes, last);
    EXPECT_EQ(ByteReader(bytes).U64(), number);
    last = bytes;
  }
}

TEST(CodingTest, VarintsRoundTripAtEveryLength) {
  for (int bits = 0; bits < 64; ++bits) {
    for (const uint64_t number : {uint64_t{1} << bits, (uint64_t{1} << bits) - 1}) {
      std::string bytes;
      AppendVarint(&bytes, number);
      ByteReader reader(bytes);
      EXPECT_EQ(reader.Varint(), number);
      EXPECT_TRUE(reader.ok());
      EXPECT_EQ(reader.remaining(), 0U);
    }
  }
}

TEST(CodingTest, AVarintBeyond64BitsIsRefused) {
  ByteReader too_large("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02");
  too_large.Varint();
  EXPECT_FALSE(too_large.ok());
  ByteReader endless(std::string_view("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", 11));
  endless.Varint();
  EXPECT_FALSE(endless.ok());
}

TEST(CodingTest, AReaderNeverReadsBeyondItsEnd) {
  ByteReader reader(std::string_view("\x01\x02\x03", 3));
  EXPECT_EQ(reader.U8(), 1);
  EXPECT_EQ(reader.U32(), 0U);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.U8(), 0);  // once failed, always failed
  EXPECT_FALSE(reader.ok());
  ByteReader lying(
      std::string_view("\x05"
                       "abc",
                       4));
  EXPECT_EQ(lying.Bytes(), "");
  EXPECT_FALSE(lying.ok());
}

// The check values of FNV-1a.
TEST(FingerprintTest, MatchesThePublishedValues) {
  EXPECT_EQ(Fingerprint(""), 0xcbf29ce484222325U);
  EXPECT_EQ(Fingerprint("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(Fingerprint("foobar"), 0x85944171f73967e8U);
  EXPECT_EQ(Fingerprint("bar", Fingerprint("foo")), Fingerprint("foobar"));
}

TEST(FingerprintTest, OfManyPartsAreThoseOfEachAlone) {
  std::string text;
  for (int i = 0; i < 5000; ++i) {
    text.push_back(static_cast<char>(i * i / 7));
  }
  const auto sizes =
      std::to_array<size_t>({5000, 0, 1, 300, 0, 0, 299, 7, 4999, 64, 63, 65, 0, 2, 1000, 0});
  for (size_t count = 0; count <= sizes.size(); ++count) {
    std::vector<FingerprintPart> parts;
    std::vector<uint64_t> alone;
    for (size_t i = 0; i < count; ++i) {
      const std::string_view bytes = std::string_view(text).substr(5000 - sizes[i]);
      parts.push_back({.bytes = bytes, .fingerprint = i});
      alone.push_back(Fingerprint(bytes, i));
    }
    AddToFingerprints(parts);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(parts[i].fingerprint, alone[i]) << i << " of " << count;
    }
  }
}

// The check value of RFC 3720's polynomial, and the same over every split.
TEST(Crc32cTest, MatchesThePublishedValue) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aaU);
  const std::string text = "the quick brown fox jumps over the lazy dog";
  for (size_t split = 0; split <= text.size(); ++split) {
    EXPECT_EQ(Crc32c(text.substr(split), Crc32c(text.substr(0, split))), Crc32c(text));
  }
}

}  // namespace
}  // namespace delayd
