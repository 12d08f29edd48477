// protocol/story_json.h — the members that tell a job's story so far, in both directions.
//
// Members: timeouts, releases, buries, kicks (left out when 0), history (left out when empty).
// Errors:  kInvalidArgument naming the member.
// Threads: see job_json.h.
#pragma once

#include <string_view>

#include "base/job.h"
#include "base/status.h"
#include "protocol/json_reader.h"
#include "protocol/json_writer.h"

namespace delayd::protocol {

void WriteStory(const JobStory& story, JsonObjectWriter* writer);

// Whether the member is one of these.
bool IsStoryMember(std::string_view name);
Status SetStoryMember(std::string_view name, const JsonValue& value, JobStory* story);

}  // namespace delayd::protocol
