#include "base/status.h"

#include <gtest/gtest.h>

namespace delayd {
namespace {

StatusOr<int> Half(int number) {
  if (number % 2 != 0) {
    return InvalidArgument("odd", "odd_number");
  }
  return number / 2;
}

StatusOr<int> Quarter(int number) {
  DELAYD_ASSIGN_OR_RETURN(const int half, Half(number));
  return Half(half);
}

TEST(StatusTest, TheReasonDefaultsToTheName) {
  EXPECT_EQ(NotFound("x").reason(), "not_found");
  EXPECT_EQ(NotFound("x", "no_queue").reason(), "no_queue");
  EXPECT_TRUE(OkStatus().ok());
}

TEST(StatusTest, ContextStandsInFront) {
  EXPECT_EQ(NotFound("x").WithContext("line 7").message(), "line 7: x");
  EXPECT_TRUE(OkStatus().WithContext("line 7").ok());
}

TEST(StatusTest, DetailsStayWithIt) {
  Status status = NotFound("x");
  status.AddDetail("finished", "then");
  const Status copy = status.WithContext("line 7").Followed("; look").WithMessage("y");
  EXPECT_EQ(copy.message(), "y");
  EXPECT_EQ(copy.reason(), "not_found");
  EXPECT_EQ(copy.details(), (Status::Details{{"finished", "then"}}));
  EXPECT_TRUE(OkStatus().WithMessage("y").ok());
  EXPECT_TRUE(OkStatus().details().empty());
}

TEST(StatusOrTest, AValueIsMovedOutOfATemporary) {
  StatusOr<std::string> text(std::string(100, 'x'));
  const char* const bytes = text.value().data();
  const std::string taken = *std::move(text);
  EXPECT_EQ(taken.data(), bytes) << "it was copied";
}

TEST(StatusOrTest, ErrorsPassThroughTheMacro) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status().reason(), "odd_number");
  EXPECT_EQ(Quarter(5).status().reason(), "odd_number");
}

}  // namespace
}  // namespace delayd
