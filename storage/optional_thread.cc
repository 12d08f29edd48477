#include "storage/optional_thread.h"

#include <atomic>
#include <system_error>
#include <utility>

namespace delayd::storage {
namespace {

std::atomic<void (*)(const std::string& why)>& TellRefusal() {
  static std::atomic<void (*)(const std::string& why)> tell = nullptr;
  return tell;
}

}  // namespace

bool OptionalThread::Start(std::function<void()> run) {
  if (started()) {
    return true;
  }
  try {
    thread_ = std::thread(std::move(run));
  } catch (const std::system_error& error) {
    if (auto* const tell = TellRefusal().exchange(nullptr)) {
      tell(error.code().message());
    }
  }
  return started();
}

void OptionalThread::Join() {
  if (started()) {
    thread_.join();
  }
}

void OnThreadRefused(void (*tell)(const std::string& why)) {
  TellRefusal().store(tell);
}

}  // namespace delayd::storage
