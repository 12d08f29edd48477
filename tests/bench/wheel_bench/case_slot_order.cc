// What orders a level's non-empty slots: the bitmap the wheel has, against a heap of expirations.
#include <cstdint>

#include "tests/bench/wheel_bench/cases.h"
#include "tests/bench/wheel_bench/register.h"
#include "wheel/indexed_priority_queue.h"
#include "wheel/slot_set.h"

namespace delayd::bench {

namespace {

constexpr size_t kSlots = 8192;

class BitmapOrder {
 public:
  void Fill(size_t slot) { slots_.Insert(slot % kSlots); }

  // The slot of the earliest expiration at or after `from`, emptied.
  size_t Take(size_t from) {
    const size_t slot = from + slots_.DistanceToNext(from % kSlots);
    slots_.Erase(slot % kSlots);
    return slot;
  }

 private:
  wheel::SlotSet slots_{kSlots};
};

class HeapOrder {
 public:
  HeapOrder() : filled_(kSlots, false) {}

  void Fill(size_t slot) {
    if (!filled_[slot % kSlots]) {
      filled_[slot % kSlots] = true;
      heap_.Add(slot);
    }
  }

  size_t Take(size_t /*from*/) {
    const size_t slot = heap_.Pop();
    filled_[slot % kSlots] = false;
    return slot;
  }

 private:
  wheel::IndexedPriorityQueue<size_t> heap_;
  std::vector<bool> filled_;
};

// `load.count` slots are filled and taken; `pending` are non-empty at any time.
template <typename Order, size_t kPending>
void FillAndTake(benchmark::State& state, Load load) {
  for (auto _ : state) {
    Order order;
    Random random(1);
    for (size_t i = 0; i < kPending; ++i) {
      order.Fill(1 + random.Below(kSlots - 1));
    }
    size_t now = 0;
    uint64_t sum = 0;
    const Stretch stretch(state, load.count);
    for (size_t i = 0; i < load.count; ++i) {
      now = order.Take(now);
      sum += now;
      order.Fill(now + 1 + random.Below(kSlots - 1));
      order.Fill(now + kSlots - 1);  // so that the set never runs dry
    }
    benchmark::DoNotOptimize(sum);
  }
}

}  // namespace

void RegisterSlotOrders() {
  RegisterCase("slots/bitmap/16", FillAndTake<BitmapOrder, 16>, k1M);
  RegisterCase("slots/heap4/16", FillAndTake<HeapOrder, 16>, k1M);
  RegisterCase("slots/bitmap/4000", FillAndTake<BitmapOrder, 4000>, k1M);
  RegisterCase("slots/heap4/4000", FillAndTake<HeapOrder, 4000>, k1M);
}

}  // namespace delayd::bench
