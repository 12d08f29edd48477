// libuv's timers (a binary heap of pointers) through its public interface, on the virtual clock.
#include <uv.h>

#include <vector>

#include "tests/bench/wheel_bench/cases.h"
#include "tests/bench/wheel_bench/register.h"

namespace delayd::bench {

namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr Tick kStepMs = 100;  // as libevent, so that the two compare

class Libuv {
 public:
  using Handle = uint32_t;
  static constexpr bool kBatches = false;

  explicit Libuv(size_t capacity) : timers_(capacity) {
    SetVirtualTime(kStart * kNsPerMs);
    uv_loop_init(&loop_);
    for (uv_timer_t& each : timers_) {
      uv_timer_init(&loop_, &each);
      each.data = this;
    }
  }

  ~Libuv() {
    for (uv_timer_t& each : timers_) {
      uv_close(reinterpret_cast<uv_handle_t*>(&each), nullptr);
    }
    uv_run(&loop_, UV_RUN_NOWAIT);
    uv_loop_close(&loop_);
    EndVirtualTime();
  }

  Libuv(const Libuv&) = delete;
  Libuv& operator=(const Libuv&) = delete;

  Handle Add(Tick due, uint64_t id) {
    uv_timer_start(&timers_[id], &Libuv::Fired, due - now_, 0);
    ++pending_;
    return static_cast<Handle>(id);
  }

  void Cancel(Handle handle) {
    uv_timer_stop(&timers_[handle]);
    --pending_;
  }

  void Move(Handle& handle, Tick due) {
    uv_timer_start(&timers_[handle], &Libuv::Fired, due - now_, 0);
  }

  Tick Next() const { return pending_ == 0 ? wheel::kNever : now_ + kStepMs; }

  template <typename Visit>
  void Advance(Tick now, Visit visit) {
    now_ = now;
    SetVirtualTime(now * kNsPerMs);
    fired_.clear();
    uv_run(&loop_, UV_RUN_NOWAIT);
    for (const Handle handle : fired_) {
      visit(handle);
    }
  }

 private:
  static void Fired(uv_timer_t* timer) {
    auto* const libuv = static_cast<Libuv*>(timer->data);
    --libuv->pending_;
    libuv->fired_.push_back(static_cast<Handle>(timer - libuv->timers_.data()));
  }

  uv_loop_t loop_ = {};
  std::vector<uv_timer_t> timers_;
  std::vector<Handle> fired_;
  size_t pending_ = 0;
  Tick now_ = kStart;
};

}  // namespace

void RegisterLibuv() {
  for (const auto& [size, load] : {std::pair{"1M", k1M}, std::pair{"10M", k10M}}) {
    RegisterBasics<Libuv>("libuv", size, load);
    RegisterCase(std::string("libuv/drain/") + size, Drain<Libuv>, load);
  }
}

}  // namespace delayd::bench
