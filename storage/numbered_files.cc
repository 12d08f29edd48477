#include "storage/numbered_files.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "storage/files.h"

namespace delayd::storage {

std::optional<uint64_t> NumberOf(std::string_view name, std::string_view ending) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || name.substr(static_cast<size_t>(end - name.data())) != ending) {
    return std::nullopt;
  }
  return number;
}

StatusOr<std::vector<std::string>> NumberedFiles(const std::string& directory,
                                                 std::string_view ending) {
  DELAYD_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(directory));
  std::vector<std::pair<uint64_t, std::string>> files;
  for (std::string& name : names) {
    if (const std::optional<uint64_t> number = NumberOf(name, ending)) {
      files.emplace_back(*number, std::move(name));
    }
  }
  std::ranges::sort(files);
  names.clear();
  for (auto& [number, name] : files) {
    names.push_back(std::move(name));
  }
  return names;
}

std::string LogName(uint64_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "%06" PRIu64 ".log", number);
  return name;
}

StatusOr<std::vector<std::string>> LogNames(const std::string& directory) {
  return NumberedFiles(directory, ".log");
}

StatusOr<uint64_t> LogBytes(const std::string& directory) {
  DELAYD_ASSIGN_OR_RETURN(const std::vector<std::string> names, LogNames(directory));
  uint64_t sum = 0;
  for (const std::string& name : names) {
    std::error_code error;
    const uint64_t bytes = std::filesystem::file_size(directory + "/" + name, error);
    sum += error ? 0 : bytes;  // the file may be removed meanwhile
  }
  return sum;
}

}  // namespace delayd::storage
