// A whole store in which disagreements are planted, verified and repaired.
#pragma once

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/memory_job_store.h"
#include "storage/verify.h"
#include "tests/unit/storage/sample_store.h"

namespace delayd::storage {

class VerifyTest : public ::testing::Test {
 protected:
  VerifyTest() { EXPECT_TRUE(store_.Commit(WholeStore()).ok()); }

  void Plant(const Batch& batch) { ASSERT_TRUE(store_.Commit(batch).ok()); }

  VerifyReport Verify() {
    auto report = VerifyStore(store_);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return std::move(report).value();
  }

  // Exactly one disagreement, with this text.
  void ExpectOne(const std::string& what, bool repairable) {
    const VerifyReport report = Verify();
    ASSERT_EQ(report.disagreements.size(), 1U) << ::testing::PrintToString(Texts(report));
    EXPECT_THAT(report.disagreements[0].what, ::testing::HasSubstr(what));
    EXPECT_EQ(report.disagreements[0].repairable, repairable);
    Plant(report.repair);
    EXPECT_EQ(Verify().ok(), repairable) << "after the repair";
  }

  static std::vector<std::string> Texts(const VerifyReport& report) {
    std::vector<std::string> texts;
    for (const Disagreement& disagreement : report.disagreements) {
      texts.push_back(disagreement.what);
    }
    return texts;
  }

  std::string Value(Table table, const std::string& key) {
    std::string value;
    EXPECT_TRUE(store_.Get(table, key, &value).ok());
    return value;
  }

  void Flip(Table table, const std::string& key) {
    std::string value = Value(table, key);
    value[value.size() / 2] = static_cast<char>(value[value.size() / 2] ^ 1);
    Batch batch;
    batch.Put(table, key, value);
    Plant(batch);
  }

  void Drop(Table table, const std::string& key) {
    Batch batch;
    batch.Delete(table, key);
    Plant(batch);
  }

  MemoryJobStore store_;
};

}  // namespace delayd::storage
