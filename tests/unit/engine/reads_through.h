// A store's reads as they are; tests derive from it and let some of them fail.
#pragma once

#include <string>
#include <string_view>

#include "storage/job_store.h"

namespace delayd::engine {

class ReadsThrough : public storage::JobReader {
 public:
  explicit ReadsThrough(const storage::JobReader& store) : store_(store) {}

  Status Get(storage::Table table, std::string_view key, std::string* value) const override {
    return store_.Get(table, key, value);
  }

  Status Scan(storage::Table table,
              std::string_view from,
              std::string_view to,
              const Visitor& visit) const override {
    return store_.Scan(table, from, to, visit);
  }

 private:
  const storage::JobReader& store_;
};

}  // namespace delayd::engine
