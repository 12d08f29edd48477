// daemon/beanstalk/hub.h — state shared by all beanstalk connections: which tubes are used and
// watched, and the counters that the stats commands show.
//
// What:    no job depends on this state; it is lost with the process.
// Threads: the core thread.
// Cost:    one hash look-up per use, watch and ignore.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/time.h"
#include "daemon/access.h"
#include "protocol/beanstalk/command.h"

#include <boost/unordered/unordered_flat_map.hpp>

namespace delayd::beanstalk {

inline constexpr std::string_view kDefaultTube = "default";

// A tube that some connection uses or watches.
struct Tube {
  std::string name;
  uint64_t using_count = 0;
  uint64_t watching = 0;
  uint64_t waiting = 0;
  // The watching session that is charged for the name; null: none is.
  const void* payer = nullptr;
};

struct HubOptions {
  size_t job_bytes_max = 65535;
  std::string version;
  BootTime started;
  // How many jobs a user who is not an admin may have stored; 0: no limit, nothing is counted.
  uint64_t user_jobs_max = 0;
  // Null: everybody may use this protocol. It has no login, so only the kernel's credentials count:
  // a peer below Role::kEnqueue, or one that would need a token, is disconnected.
  const Access* access = nullptr;
};

class Hub {
 public:
  explicit Hub(HubOptions options);

  const HubOptions& options() const { return options_; }

  // Leave undoes Use and Ignore undoes Watch. A tube that nobody uses or watches is forgotten.
  Tube* Use(std::string_view name);
  void Leave(Tube* tube);
  Tube* Watch(std::string_view name);
  void Ignore(Tube* tube);

  const Tube* Find(std::string_view name) const;

  template <typename Visit>
  void ForEachTube(const Visit& visit) const {
    for (const auto& [name, tube] : tubes_) {
      visit(*tube);
    }
  }

  void Count(Verb verb) { ++commands_[static_cast<size_t>(verb)]; }

  uint64_t count(Verb verb) const { return commands_[static_cast<size_t>(verb)]; }

  const std::string& instance() const { return instance_; }

  // ---- Kept by the sessions ----
  uint64_t connections = 0;
  uint64_t connections_total = 0;
  uint64_t producers = 0;
  uint64_t workers = 0;
  uint64_t waiting = 0;

 private:
  struct StringHash {
    using is_transparent = void;

    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  Tube* Get(std::string_view name);
  void ForgetUnused(Tube* tube);

  const HubOptions options_;
  std::string instance_;  // a random id of this process
  std::array<uint64_t, kVerbCount> commands_{};
  boost::unordered_flat_map<std::string, std::unique_ptr<Tube>, StringHash, std::equal_to<>> tubes_;
};

}  // namespace delayd::beanstalk
