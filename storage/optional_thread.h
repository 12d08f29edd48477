// storage/optional_thread.h — a thread that is created when first needed, and that its owner can do
// without.
//
// What:    under a limit on processes or memory, the system may refuse a thread in the middle of a
//          load. Work that only tidies up must not end the store: it is left undone and tried again
//          at the next occasion.
// Errors:  none; the first refusal in the life of the process is reported through OnThreadRefused.
// Threads: the owner makes calls on one object one at a time. OnThreadRefused before any other
//          call.
// Cost:    nothing until started.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace delayd::storage {

class OptionalThread {
 public:
  // Starts the thread unless it runs already. False: the system has none now, and nothing runs.
  bool Start(std::function<void()> run);

  bool started() const { return thread_.joinable(); }

  // Waits for the thread to end, if it was started.
  void Join();

 private:
  std::thread thread_;
};

// `tell` is called once, with the system's reason: this room has no log of its own.
void OnThreadRefused(void (*tell)(const std::string& why));

}  // namespace delayd::storage
