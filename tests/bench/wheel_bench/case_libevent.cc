// libevent's timers (a binary heap of pointers) through its public interface, on the virtual clock.
#include <vector>

#include "tests/bench/wheel_bench/cases.h"
#include "tests/bench/wheel_bench/loop_timers.h"

#include <event2/event.h>
#include <event2/event_struct.h>

namespace delayd::bench {

namespace {

class Libevent {
 public:
  Libevent(size_t capacity, std::vector<uint32_t>* fired) : events_(capacity), fired_(fired) {
    event_config* config = event_config_new();
    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    base_ = event_base_new_with_config(config);
    event_config_free(config);
    for (event& each : events_) {
      event_assign(&each, base_, -1, 0, &Libevent::Fired, this);
    }
  }

  ~Libevent() {
    events_.clear();
    event_base_free(base_);
  }

  Libevent(const Libevent&) = delete;
  Libevent& operator=(const Libevent&) = delete;

  void Start(uint32_t index, Tick delay) {
    const timeval after = {static_cast<time_t>(delay / 1000),
                           static_cast<suseconds_t>(delay % 1000 * 1000)};
    event_add(&events_[index], &after);
  }

  void Stop(uint32_t index) { event_del(&events_[index]); }

  void RunOnce() { event_base_loop(base_, EVLOOP_ONCE | EVLOOP_NONBLOCK); }

 private:
  // It does not say which one has fired; nobody here asks.
  static void Fired(int /*fd*/, short /*what*/, void* self) {  // NOLINT(google-runtime-int)
    static_cast<Libevent*>(self)->fired_->push_back(0);
  }

  std::vector<event> events_;
  std::vector<uint32_t>* fired_;
  event_base* base_ = nullptr;
};

}  // namespace

void RegisterLibevent() {
  RegisterLoop<Libevent>("libevent");
}

}  // namespace delayd::bench
