#include "daemon/beanstalk/hub.h"

#include <random>
#include <utility>

namespace delayd::beanstalk {
namespace {

std::string RandomHex() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr size_t kBytes = 8;
  std::random_device device;
  std::string text;
  for (size_t i = 0; i < kBytes; ++i) {
    const unsigned byte = device() & 0xff;
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xf];
  }
  return text;
}

}  // namespace

Hub::Hub(HubOptions options) : options_(std::move(options)), instance_(RandomHex()) {}

Tube* Hub::Get(std::string_view name) {
  const auto found = tubes_.find(name);
  if (found != tubes_.end()) {
    return found->second.get();
  }
  auto tube = std::make_unique<Tube>();
  tube->name = name;
  return tubes_.emplace(std::string(name), std::move(tube)).first->second.get();
}

void Hub::ForgetUnused(Tube* tube) {
  if (tube->using_count == 0 && tube->watching == 0) {
    tubes_.erase(tubes_.find(tube->name));
  }
}

Tube* Hub::Use(std::string_view name) {
  Tube* const tube = Get(name);
  ++tube->using_count;
  return tube;
}

void Hub::Leave(Tube* tube) {
  --tube->using_count;
  ForgetUnused(tube);
}

Tube* Hub::Watch(std::string_view name) {
  Tube* const tube = Get(name);
  ++tube->watching;
  return tube;
}

void Hub::Ignore(Tube* tube) {
  --tube->watching;
  ForgetUnused(tube);
}

const Tube* Hub::Find(std::string_view name) const {
  const auto found = tubes_.find(name);
  return found == tubes_.end() ? nullptr : found->second.get();
}

}  // namespace delayd::beanstalk
