// daemon/place_of.h — where a setting was read, for errors about what it names.
//
// Threads: any.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace delayd {

// What an error about the setting `key` begins with: see Config::PlaceOf.
using PlaceOf = std::function<std::string(std::string_view key)>;

// For settings that were read from nowhere.
inline std::string KeyAlone(std::string_view key) {
  return std::string(key);
}

}  // namespace delayd
