// tests/storm/io_faults.h — the disk errors that a storm gives the daemon to live through, or to
// end by.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace delayd::test {
class FaultFileSystem;
}  // namespace delayd::test

namespace delayd::storm {

struct IoFaultCase {
  const char* call;   // IoCallName
  const char* fault;  // "eio", "enospc", "short"
  // Storms pick one of the first so many calls of that kind after the start.
  uint32_t calls_max;
  // A commit stands behind it, or what a commit needs: the daemon must end by itself. Only what
  // StruckOptionsFile tells of it may survive.
  bool ends;
};

// What the daemon says when the fault strikes begins so; the call and the file follow.
inline constexpr const char* kIoFaultLine = "io fault: ";

// RocksDB writes down at each open which options it has. Nothing reads that, and 7.8 goes on when
// it fails.
bool StruckOptionsFile(const std::string& log);

std::span<const IoFaultCase> IoFaultCases();

// "CALL:N:FAULT", N from 0. False when `text` is not that.
bool PlanIoFault(const std::string& text, test::FaultFileSystem* disk);

}  // namespace delayd::storm
