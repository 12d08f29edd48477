// tests/support/files.h — whole files, read and written.
//
// Errors:  none are told: what cannot be read is empty.
// Threads: any.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

namespace delayd::test {

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace delayd::test
