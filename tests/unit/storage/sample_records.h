// One job record of every kind, for the tests of the format.
#pragma once

#include <string>
#include <vector>

#include "storage/keys.h"
#include "storage/record.h"

namespace delayd::storage {

inline constexpr uint64_t kSampleId = 42;
// Where a record of that id is kept.
inline const std::string kTimer = TimerKey(WallFromMillis(1'700'000'060'000), JobId{kSampleId});

inline JobRecord PlainRecord() {
  JobRecord record;
  record.id = JobId{kSampleId};
  record.queue = QueueId{3};
  record.due_kind = DueKind::kAbsolute;
  record.due = WallFromMillis(1'700'000'060'000);
  record.created = WallFromMillis(1'700'000'000'000);
  record.priority = 1024;
  record.max_attempts = 25;
  record.lease = Millis(60'000);
  record.payload = R"({"order_id":1001})";
  record.payload_bytes = record.payload.size();
  return record;
}

inline JobRecord FullRecord() {
  JobRecord record = PlainRecord();
  record.due_kind = DueKind::kRelative;
  record.boot_id = 0x0123456789abcdef;
  record.boot_due = BootFromMillis(98'765'432);
  record.attempts = 2;
  record.expires_after = Millis(3'600'000);
  record.fingerprint = 0xfedcba9876543210;
  record.key = "order:1001";
  record.last_error = "exit status 1";
  return record;
}

inline JobRecord BigRecord() {
  JobRecord record = FullRecord();
  record.payload.clear();
  record.payload_is_big = true;
  record.payload_bytes = 5000;
  return record;
}

// Of record version 3.
inline JobRecord OwnedRecord() {
  JobRecord record = PlainRecord();
  record.user = "uid:1000";
  return record;
}

// Of record version 2.
inline JobRecord LivedRecord() {
  JobRecord record = FullRecord();
  record.delay = Millis(30'000);
  record.timeouts = 1;
  record.releases = 2;
  record.kicks = 300;
  record.events = {{.kind = JobEvent::Kind::kNacked,
                    .at = WallFromMillis(1'700'000'061'000),
                    .who = "host:17",
                    .what = "exit status 1"},
                   {.kind = JobEvent::Kind::kKicked, .at = WallFromMillis(1'699'999'999'999)}};
  return record;
}

// Of record versions 4 and 5.
inline JobRecord ReturnedRecord() {
  JobRecord record = PlainRecord();
  record.returns = 300;
  return record;
}

inline JobRecord OwnedAndReturnedRecord() {
  JobRecord record = OwnedRecord();
  record.returns = 1;
  return record;
}

inline std::vector<JobRecord> SampleJobRecords() {
  JobRecord odd = PlainRecord();
  odd.due = WallFromMillis(-5);
  odd.created = WallFromMillis(5);
  odd.priority = 0xffffffff;
  odd.queue = QueueId{0xffffffff};
  odd.max_attempts = 0xffffffff;
  odd.payload.clear();
  odd.payload_bytes = 0;
  JobRecord moved = PlainRecord();
  moved.delay = Millis(-1);
  return {PlainRecord(),
          FullRecord(),
          BigRecord(),
          odd,
          LivedRecord(),
          moved,
          OwnedRecord(),
          ReturnedRecord(),
          OwnedAndReturnedRecord()};
}

}  // namespace delayd::storage
