#include "protocol/http_reader.h"

#include <string>

#include <gtest/gtest.h>

namespace delayd::protocol {
namespace {

constexpr std::string_view kHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

TEST(HttpReaderTest, AnAnswerInChunksArrivesWholeHoweverItIsCut) {
  for (const std::string_view chunks : {"0\r\n\r\n", "2\r\n{}\r\n0\r\n\r\n"}) {
    const std::string bytes = std::string(kHead) + std::string(chunks);
    for (size_t step = 1; step <= bytes.size(); ++step) {
      HttpReader reader;
      for (size_t at = 0; at < bytes.size(); at += step) {
        ASSERT_FALSE(reader.done()) << "step " << step << " at " << at;
        ASSERT_TRUE(reader.Feed(std::string_view(bytes).substr(at, step)).ok());
      }
      ASSERT_TRUE(reader.done()) << "step " << step;
      EXPECT_TRUE(reader.keep_alive());
      EXPECT_EQ(reader.Take().body, chunks.size() > 5 ? "{}" : "");
    }
  }
}

TEST(HttpReaderTest, AnAnswerThatIsCutOffIsAnError) {
  HttpReader reader;
  ASSERT_TRUE(reader.Feed(std::string(kHead) + "0\r\n").ok());
  EXPECT_EQ(reader.FeedEnd().reason(), "invalid_response");
}

}  // namespace
}  // namespace delayd::protocol
