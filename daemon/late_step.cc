#include "daemon/late_step.h"

#include <condition_variable>
#include <mutex>

#include "storage/optional_thread.h"

namespace delayd {

void RunAndTellWhenLate(std::chrono::milliseconds late,
                        const std::function<void()>& tell,
                        const std::function<void()>& step) {
  std::mutex mutex;
  std::condition_variable wake;
  bool ended = false;  // guarded by mutex
  storage::OptionalThread watch;
  watch.Start([&] {
    std::unique_lock lock(mutex);
    if (!wake.wait_for(lock, late, [&] { return ended; })) {
      lock.unlock();
      tell();
    }
  });
  step();
  {
    const std::lock_guard lock(mutex);
    ended = true;
  }
  wake.notify_one();
  watch.Join();
}

}  // namespace delayd
