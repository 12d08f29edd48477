// daemon/beanstalk/hub.h — what all beanstalk connections share: who uses and watches which tube,
// and the counters that the stats show.
//
// What:    nothing here is needed for a job to be right; it is lost with the process.
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

// A tube somebody uses or watches.
struct Tube {
  std::string name;
  uint64_t using_count = 0;
  uint64_t watching = 0;
  uint64_t waiting = 0;
  // The session, of those that watch it, that pays for its name; null: none does.
  const void* payer = nullptr;
};

struct HubOptions {
  size_t job_bytes_max = 65535;
  std::string version;
  BootTime started;
  // Jobs that a user who is no admin may have stored; 0: no limit, and nothing is counted.
  uint64_t user_jobs_max = 0;
  // Null: everybody may speak this protocol. It has no login, so that only the kernel's word
  // counts: whoever is less than Role::kEnqueue, or would need a token, is hung up on.
  const Access* access = nullptr;
};

class Hub {
 public:
  explicit Hub(HubOptions options);

  const HubOptions& options() const { return options_; }

  // Each is undone by the other, with the same tube; a tube that nobody has is forgotten.
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
  std::string instance_;  // differs from process to process
  std::array<uint64_t, kVerbCount> commands_{};
  boost::unordered_flat_map<std::string, std::unique_ptr<Tube>, StringHash, std::equal_to<>> tubes_;
};

}  // namespace delayd::beanstalk
