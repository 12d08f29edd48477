// The time it is for what takes it as an argument.
#pragma once

#include "base/time.h"

namespace delayd {

inline const Now kNow{WallFromMillis(1'800'000'000'000), BootFromMillis(5000)};

}  // namespace delayd
