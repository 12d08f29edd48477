#include "protocol/http_reader.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace delayd::protocol {
namespace {

constexpr std::string_view kHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

// The pieces are `step` bytes long; the answer is whole with the last.
void FeedInSteps(std::string_view bytes, size_t step, HttpReader* reader) {
  for (size_t at = 0; at < bytes.size(); at += step) {
    ASSERT_FALSE(reader->done()) << "step " << step << " at " << at;
    ASSERT_TRUE(reader->Feed(bytes.substr(at, step)).ok());
  }
  ASSERT_TRUE(reader->done()) << "step " << step;
  EXPECT_TRUE(reader->keep_alive());
}

TEST(HttpReaderTest, AnAnswerInChunksArrivesWholeHoweverItIsCut) {
  for (const std::string_view chunks : {"0\r\n\r\n", "2\r\n{}\r\n0\r\n\r\n"}) {
    const std::string bytes = std::string(kHead) + std::string(chunks);
    for (size_t step = 1; step <= bytes.size(); ++step) {
      HttpReader reader;
      FeedInSteps(bytes, step, &reader);
      ASSERT_FALSE(::testing::Test::HasFatalFailure());
      EXPECT_EQ(reader.Take().body, chunks.size() > 5 ? "{}" : "");
    }
  }
}

TEST(HttpReaderTest, AnAnswerTellsItsDate) {
  for (const auto& [line, date] : std::map<std::string, std::optional<WallTime>>{
           {"Date: Fri, 01 Jan 2027 09:00:00 GMT\r\n", WallFromMillis(1'798'794'000'000)},
           {"", std::nullopt}}) {
    HttpReader reader;
    ASSERT_TRUE(reader.Feed("HTTP/1.1 200 OK\r\n" + line + "Content-Length: 0\r\n\r\n").ok());
    EXPECT_EQ(reader.Take().date, date);
  }
}

TEST(HttpReaderTest, ARedirectTellsWhereItLeads) {
  HttpReader reader;
  ASSERT_TRUE(
      reader.Feed("HTTP/1.1 308 Moved\r\nLocation: https://a/b\r\nContent-Length: 0\r\n\r\n").ok());
  EXPECT_EQ(reader.Take().location, "https://a/b");
}

TEST(HttpReaderTest, AnAnswerThatIsCutOffIsAnError) {
  HttpReader reader;
  ASSERT_TRUE(reader.Feed(std::string(kHead) + "0\r\n").ok());
  EXPECT_EQ(reader.FeedEnd().reason(), "invalid_response");
}

// RFC 9110, section 15.2: a client must take them, wanted or not.
TEST(HttpReaderTest, WhatIsSaidBeforeTheAnswerIsPassedOver) {
  const std::string bytes =
      "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" +
      std::string(kHead) + "2\r\n{}\r\n0\r\n\r\n";
  for (size_t step = 1; step <= bytes.size(); ++step) {
    HttpReader reader;
    FeedInSteps(bytes, step, &reader);
    ASSERT_FALSE(::testing::Test::HasFatalFailure());
    const HttpResponse response = reader.Take();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "{}");
  }
}

TEST(HttpReaderTest, AnAnswerThatWasOnlyPromisedIsAnError) {
  HttpReader reader;
  ASSERT_TRUE(reader.Feed("HTTP/1.1 102 Processing\r\n\r\n").ok());
  EXPECT_EQ(reader.FeedEnd().reason(), "invalid_response");
}

TEST(HttpReaderTest, ATurnToAnotherProtocolIsTheLastAnswer) {
  HttpReader reader;
  ASSERT_TRUE(reader.Feed("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n").ok());
  ASSERT_TRUE(reader.done());
  EXPECT_FALSE(reader.keep_alive());
  EXPECT_EQ(reader.Take().status, 101);
}

}  // namespace
}  // namespace delayd::protocol
