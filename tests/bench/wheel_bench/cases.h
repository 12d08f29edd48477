// tests/bench/wheel_bench/cases.h — every group of cases; main registers them in this order.
#pragma once

namespace delayd::bench {

void RegisterFloor();
void RegisterWheel();
void RegisterWheelSmallPages();
void RegisterHeap4();
void RegisterLazyPriorityQueue();
void RegisterMultimap();
void RegisterSlotOrders();
void RegisterLibevent();
void RegisterLibuv();

}  // namespace delayd::bench
