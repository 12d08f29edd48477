#include "daemon/process_figures.h"

#include <dirent.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <sys/resource.h>

namespace delayd {

namespace {

// The fields of /proc/self/stat after the program's name, which may itself contain blanks. The
// first is field 3 of proc(5).
std::vector<uint64_t> ReadStat() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  std::vector<uint64_t> fields;
  if (name_end == std::string::npos) {
    return fields;
  }
  std::istringstream rest(line.substr(name_end + 1));
  for (std::string field; rest >> field;) {
    fields.push_back(std::strtoull(field.c_str(), nullptr, 10));
  }
  return fields;
}

uint64_t BootSeconds() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("btime ")) {
      return std::strtoull(line.c_str() + 6, nullptr, 10);
    }
  }
  return 0;
}

uint64_t CountOpenFiles() {
  DIR* directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) {
    return 0;
  }
  uint64_t entries = 0;
  while (::readdir(directory) != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    ++entries;
  }
  ::closedir(directory);
  constexpr uint64_t kNotFiles = 3;  // ".", "..", and the directory that is being read
  return entries > kNotFiles ? entries - kNotFiles : 0;
}

}  // namespace

ProcessFigures ReadProcessFigures() {
  // Field numbers of proc(5), minus 3: fields[0] is field 3.
  constexpr size_t kUserTime = 14 - 3;
  constexpr size_t kSystemTime = 15 - 3;
  constexpr size_t kThreads = 20 - 3;
  constexpr size_t kStartTime = 22 - 3;
  constexpr size_t kVirtualBytes = 23 - 3;
  constexpr size_t kResidentPages = 24 - 3;
  ProcessFigures figures;
  const std::vector<uint64_t> stat = ReadStat();
  if (stat.size() > kResidentPages) {
    const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
    figures.cpu_seconds = static_cast<double>(stat[kUserTime] + stat[kSystemTime]) / ticks;
    figures.threads = stat[kThreads];
    figures.virtual_bytes = stat[kVirtualBytes];
    figures.resident_bytes = stat[kResidentPages] * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    figures.start_seconds =
        static_cast<double>(BootSeconds()) + static_cast<double>(stat[kStartTime]) / ticks;
  }
  figures.open_files = CountOpenFiles();
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    figures.open_files_max = limit.rlim_cur;
  }
  return figures;
}

}  // namespace delayd
