// tests/support/json_members.h — the members of a JSON object: name -> JSON text.
//
// Errors:  a failed expectation where the text is no object.
// Threads: any.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "protocol/json_reader.h"

namespace delayd::test {

inline std::map<std::string, std::string> Members(const std::string& json) {
  std::map<std::string, std::string> members;
  const Status read =
      protocol::ReadJsonObject(json, [&](std::string_view name, const protocol::JsonValue& value) {
        members.emplace(name, value.text);
        return OkStatus();
      });
  EXPECT_TRUE(read.ok()) << read.message();
  return members;
}

}  // namespace delayd::test
