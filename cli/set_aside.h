// cli/set_aside.h — jobs of a beanstalkd that delayd does not take: moves them out of the way of
// the jobs behind them until the import is over.
//
// What:    they are buried at the source, so none is lost if it, or this program, dies. PutBack
//          restores them: ready, delayed by what is left then, or buried.
// Units:   the source tells what is left of a delay in whole seconds, rounded down; one is added.
// Errors:  the source's. A server without reserve-job (before 1.12) keeps delayed jobs where they
//          are.
// Threads: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "protocol/beanstalk/client.h"

namespace delayd::cli {

class SetAside {
 public:
  explicit SetAside(beanstalk::Client* source) : source_(source) {}

  bool Holds(uint64_t id) const { return jobs_.contains(id); }

  size_t size() const { return jobs_.size(); }

  size_t CountOf(std::string_view tube) const;

  // `stats` is the job's stats-job reply. A job already set aside goes behind all buried ones.
  Status Put(uint64_t id, std::string_view stats);
  Status PutBack();

  // "id 5 of tube orders, id 7 of tube mail (buried), ...", of bounded length.
  std::string Names() const;

 private:
  struct Job {
    std::string tube;
    std::string priority;
    std::string state;
    uint64_t seconds_left = 0;  // of its delay
    uint64_t age = 0;           // in seconds
  };

  Status Bury(uint64_t id, const std::string& priority);
  Status Delay(const std::string& number, const Job& job);

  beanstalk::Client* source_;
  std::map<uint64_t, Job> jobs_;
};

}  // namespace delayd::cli
