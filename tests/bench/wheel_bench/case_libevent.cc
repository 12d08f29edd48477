// libevent's timers (a binary heap of pointers) through its public interface, on the virtual clock.
#include <vector>

#include "tests/bench/wheel_bench/cases.h"
#include "tests/bench/wheel_bench/register.h"

#include <event2/event.h>
#include <event2/event_struct.h>

namespace delayd::bench {

namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr Tick kStepMs = 100;  // libevent does not say when its next timer is due

class Libevent {
 public:
  using Handle = uint32_t;
  static constexpr bool kBatches = false;

  explicit Libevent(size_t capacity) : events_(capacity) {
    SetVirtualTime(kStart * kNsPerMs);
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
    EndVirtualTime();
  }

  Libevent(const Libevent&) = delete;
  Libevent& operator=(const Libevent&) = delete;

  Handle Add(Tick due, uint64_t id) {
    Schedule(static_cast<Handle>(id), due);
    return static_cast<Handle>(id);
  }

  void Cancel(Handle handle) {
    event_del(&events_[handle]);
    --pending_;
  }

  void Move(Handle& handle, Tick due) {
    --pending_;
    Schedule(handle, due);
  }

  Tick Next() const { return pending_ == 0 ? wheel::kNever : now_ + kStepMs; }

  template <typename Visit>
  void Advance(Tick now, Visit visit) {
    now_ = now;
    SetVirtualTime(now * kNsPerMs);
    fired_.clear();
    event_base_loop(base_, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    for (const Handle handle : fired_) {
      visit(handle);
    }
  }

 private:
  static void Fired(int /*fd*/, short /*what*/, void* self) {  // NOLINT(google-runtime-int)
    auto* const libevent = static_cast<Libevent*>(self);
    --libevent->pending_;
    libevent->fired_.push_back(0);
  }

  void Schedule(Handle handle, Tick due) {
    const Tick delay = due - now_;
    const timeval after = {static_cast<time_t>(delay / 1000),
                           static_cast<suseconds_t>(delay % 1000 * 1000)};
    event_add(&events_[handle], &after);
    ++pending_;
  }

  std::vector<event> events_;
  event_base* base_ = nullptr;
  std::vector<Handle> fired_;
  size_t pending_ = 0;
  Tick now_ = kStart;
};

}  // namespace

void RegisterLibevent() {
  for (const auto& [size, load] : {std::pair{"1M", k1M}, std::pair{"10M", k10M}}) {
    RegisterBasics<Libevent>("libevent", size, load);
    RegisterCase(std::string("libevent/drain/") + size, Drain<Libevent>, load);
  }
}

}  // namespace delayd::bench
