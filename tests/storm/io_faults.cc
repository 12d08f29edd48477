#include "tests/storm/io_faults.h"

#include <array>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "tests/support/fault_file_system.h"

namespace delayd::storm {
namespace {

using test::IoCall;
using test::IoFault;

constexpr auto kIoFaults = std::to_array<IoFaultCase>({
    {"sync", "eio", 300, true},
    {"append", "eio", 300, false},
    {"append", "enospc", 300, false},
    {"append", "short", 300, false},
    {"create", "eio", 12, false},
    {"create", "enospc", 12, false},
    {"directory sync", "eio", 8, false},
    {"rename", "eio", 3, false},
    {"delete", "eio", 6, false},
    {"truncate", "eio", 4, false},
    {"open", "eio", 20, false},
    {"read", "eio", 200, false},
});

constexpr std::array kFaults = {std::pair("eio", IoFault::kEio),
                                std::pair("enospc", IoFault::kEnospc),
                                std::pair("short", IoFault::kShortWrite)};

}  // namespace

std::span<const IoFaultCase> IoFaultCases() {
  return kIoFaults;
}

bool StruckOptionsFile(const std::string& log) {
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kIoFaultLine) && line.find("/OPTIONS-") != std::string::npos) {
      return true;
    }
  }
  return false;
}

bool PlanIoFault(const std::string& text, test::FaultFileSystem* disk) {
  const size_t first = text.find(':');
  const size_t last = text.rfind(':');
  if (first == last) {
    return false;
  }
  const uint64_t n = std::strtoull(text.c_str() + first + 1, nullptr, 10);
  for (int call = 0; call <= static_cast<int>(IoCall::kRead); ++call) {
    for (const auto& [name, fault] : kFaults) {
      if (text.substr(0, first) == test::IoCallName(static_cast<IoCall>(call)) &&
          text.substr(last + 1) == name) {
        disk->FailCall(static_cast<IoCall>(call), n, fault);
        return true;
      }
    }
  }
  return false;
}

}  // namespace delayd::storm
