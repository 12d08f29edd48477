#include "cli/curl_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace delayd::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CurlLibraryTest, OneThatIsNotThereIsAnErrorThatSaysWhatToInstall) {
  const StatusOr<CurlLibrary> library = OpenCurl("libcurl-of-nobody.so.4");
  EXPECT_EQ(library.status().code(), StatusCode::kInternal);
  EXPECT_THAT(library.status().message(),
              AllOf(HasSubstr("libcurl-of-nobody.so.4"), HasSubstr("install it")));
}

// A library of that name that is something else, or too old.
TEST(CurlLibraryTest, OneWithoutTheFunctionsIsAnErrorThatNamesTheFirst) {
  const StatusOr<CurlLibrary> library = OpenCurl("libc.so.6");
  EXPECT_EQ(library.status().code(), StatusCode::kInternal);
  EXPECT_THAT(library.status().message(), HasSubstr("curl_global_init"));
}

TEST(CurlLibraryTest, TheOneThatIsInstalledIsLoaded) {
  ASSERT_TRUE(LoadCurl().ok()) << LoadCurl().message();
  EXPECT_STREQ(Curl().easy_strerror(CURLE_OK), "No error");
}

}  // namespace
}  // namespace delayd::cli
