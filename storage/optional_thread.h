// storage/optional_thread.h — a thread that is made when it is first wanted, and that its owner can
// do without.
//
// What:    under a limit of processes or memory the system may refuse one in the midst of a load.
//          For what only tidies up, no store ends: it is left undone, and tried again at the next
//          occasion.
// Errors:  none; the first refusal in the life of the process is told to whoever asked to know.
// Threads: calls on one object one at a time, which its owner sees to. OnThreadRefused before any.
// Cost:    nothing until started.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace delayd::storage {

class OptionalThread {
 public:
  // Unless it runs already. False: the system has none now, and nothing runs.
  bool Start(std::function<void()> run);

  bool started() const { return thread_.joinable(); }

  // Waits for its end, where it was started.
  void Join();

 private:
  std::thread thread_;
};

// `tell` is given what the system said, once. For a log; the room has none.
void OnThreadRefused(void (*tell)(const std::string& why));

}  // namespace delayd::storage
