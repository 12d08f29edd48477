// libuv's timers (a binary heap of pointers) through its public interface, on the virtual clock.
#include <uv.h>

#include <vector>

#include "tests/bench/wheel_bench/cases.h"
#include "tests/bench/wheel_bench/loop_timers.h"

namespace delayd::bench {

namespace {

class Libuv {
 public:
  Libuv(size_t capacity, std::vector<uint32_t>* fired) : timers_(capacity), fired_(fired) {
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
  }

  Libuv(const Libuv&) = delete;
  Libuv& operator=(const Libuv&) = delete;

  void Start(uint32_t index, Tick delay) {
    uv_timer_start(&timers_[index], &Libuv::Fired, delay, 0);
  }

  void Stop(uint32_t index) { uv_timer_stop(&timers_[index]); }

  void RunOnce() { uv_run(&loop_, UV_RUN_NOWAIT); }

 private:
  static void Fired(uv_timer_t* timer) {
    auto* const libuv = static_cast<Libuv*>(timer->data);
    libuv->fired_->push_back(static_cast<uint32_t>(timer - libuv->timers_.data()));
  }

  uv_loop_t loop_ = {};
  std::vector<uv_timer_t> timers_;
  std::vector<uint32_t>* fired_;
};

}  // namespace

void RegisterLibuv() {
  RegisterLoop<Libuv>("libuv");
}

}  // namespace delayd::bench
