#include "daemon/awake_processors.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/errno_text.h"
#include "daemon/log.h"

namespace delayd {

namespace {

constexpr int32_t kAwakeUs = 0;
constexpr int32_t kAnyUs = -1;  // PM_QOS_DEFAULT_VALUE: no request

}  // namespace

StatusOr<std::unique_ptr<AwakeProcessors>> AwakeProcessors::Open(Millis idle,
                                                                 const std::string& device) {
  if (idle == Millis(0)) {
    return std::unique_ptr<AwakeProcessors>();
  }
  UniqueFd fd(::open(device.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) {
    const int error = errno;
    return FailedPrecondition(
        device + ": " + ErrnoText(error) +
        (error == EACCES || error == EPERM
             ? "; let the daemon's user write to it (the drop-in delayd-awake.conf does), or leave "
               "processors.awake at 0s"
             // The unit's PrivateDevices hides it.
             : "; as a service the daemon sees it with the drop-in delayd-awake.conf only; where "
               "the machine does not offer it, leave processors.awake at 0s"));
  }
  return std::unique_ptr<AwakeProcessors>(new AwakeProcessors(std::move(fd), device, idle));
}

void AwakeProcessors::Work(BootTime now) {
  last_work_ = now;
  if (!wake_ && device_.valid() && Ask(kAwakeUs)) {
    wake_ = now + idle_;
    awake_since_ = now;
  }
}

void AwakeProcessors::Tend(BootTime now) {
  if (!wake_ || now < *wake_) {
    return;
  }
  if (now < last_work_ + idle_) {
    wake_ = last_work_ + idle_;
    return;
  }
  awake_before_ = AwakeFor(now);
  wake_.reset();
  Ask(kAnyUs);
}

bool AwakeProcessors::Ask(int32_t latency_us) {
  const ssize_t written = ::write(device_.get(), &latency_us, sizeof latency_us);
  if (written == sizeof latency_us) {
    return true;
  }
  const std::string detail = written < 0 ? ErrnoText(errno) : "it took a part of the request";
  log::Warn("the kernel does not keep the processors awake any more; answers take longer",
            {{"device", path_}, {"detail", detail}});
  device_ = UniqueFd();  // closing it withdraws the request
  return false;
}

}  // namespace delayd
