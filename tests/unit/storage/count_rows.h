// How many rows a table has.
#pragma once

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "storage/job_store.h"

namespace delayd::storage {

inline uint64_t CountRows(const JobReader& reader, Table table = Table::kTimers) {
  uint64_t rows = 0;
  const Status status =
      reader.Scan(table, std::string(1, '\0'), {}, [&rows](auto, auto) { return ++rows > 0; });
  EXPECT_TRUE(status.ok()) << status.message();
  return rows;
}

}  // namespace delayd::storage
