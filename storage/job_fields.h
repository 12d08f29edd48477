// storage/job_fields.h — the fields of a job's record, without the frame around them: they are also
// part of the record of a finished job.
//
// Errors:  those of the reader; a field with an impossible value is rejected.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "storage/record.h"
#include "storage/seal.h"

namespace delayd::storage {

// The record's version, then everything up to the seal.
void AppendJobFields(std::string* out, const JobRecord& record);

// Reads what follows a version that was read already. The id comes from the key.
JobRecord ReadJobFields(SealReader* reader, uint8_t version);

}  // namespace delayd::storage
