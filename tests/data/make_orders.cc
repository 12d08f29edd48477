// Writes the sample orders: job specs as JSON Lines for `delayctl import`, the same bytes on every
// machine.
//
//   make_orders > tests/data/orders.jsonl
//
// Each line cancels one order that was not paid in time: its key is the order's, its payload the
// order itself, 100 bytes to 4 KB, with names and notes beyond ASCII.
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "tests/support/split_mix.h"

namespace {

class Random : public delayd::SplitMix {
 public:
  using SplitMix::SplitMix;

  template <size_t N>
  std::string_view Of(const std::array<std::string_view, N>& choices) {
    return choices[Below(N)];
  }
};

constexpr std::array<std::string_view, 16> kCustomers = {"Ada Obi",
                                                         "Zoë Müller",
                                                         "李明",
                                                         "Łukasz Żak",
                                                         "Ελένη Παππά",
                                                         "Jón Þórsson",
                                                         "Amélie Noël",
                                                         "佐藤 花子",
                                                         "Иван Петров",
                                                         "Noor Haddad",
                                                         "سارة علي",
                                                         "Björn Åkesson",
                                                         "O'Neil & Son",
                                                         "Nguyễn Thị Lan",
                                                         "김민준",
                                                         "María José Núñez"};
constexpr std::array<std::string_view, 12> kItems = {"espresso cups",
                                                     "desk lamp",
                                                     "crème brûlée set",
                                                     "notebook A5",
                                                     "USB cable 2 m",
                                                     "chaise longue",
                                                     "抹茶 tea",
                                                     "wool socks",
                                                     "jalapeño seeds",
                                                     "bicycle bell",
                                                     "piñata",
                                                     "rain jacket"};
constexpr std::array<std::string_view, 10> kWords = {
    "please", "ring", "twice", "leave", "at", "the", "door", "☕", "grüße", "ありがとう"};

std::string Notes(Random* random, size_t bytes) {
  std::string notes;
  while (notes.size() < bytes) {
    notes += random->Of(kWords);
    notes += ' ';
  }
  return notes;
}

std::string Order(Random* random, uint64_t id) {
  // One draw a statement: compilers do not agree in which order they draw within one.
  const uint64_t amount = 100 + random->Below(500'000);
  const std::string customer(random->Of(kCustomers));
  std::string order = R"({"event":"order_unpaid","order_id":)" + std::to_string(id) +
                      R"(,"customer":")" + customer + R"(","amount_cents":)" +
                      std::to_string(amount) + R"(,"items":[)";
  const uint64_t items = 1 + random->Below(4);
  for (uint64_t i = 0; i < items; ++i) {
    const uint64_t quantity = 1 + random->Below(9);
    const std::string item(random->Of(kItems));
    order += std::string(i == 0 ? "" : ",") + R"({"name":")" + item + R"(","quantity":)" +
             std::to_string(quantity) + "}";
  }
  order += "]";
  // Most orders are small, a few carry long notes.
  const uint64_t kind = random->Below(100);
  const uint64_t notes = kind < 80 ? 0 : kind < 95 ? random->Below(600) : 700 + random->Below(2900);
  if (notes > 0) {
    order += R"(,"notes":")" + Notes(random, notes) + "\"";
  }
  return order + "}";
}

}  // namespace

int main() {
  constexpr uint64_t kCount = 10'000;
  constexpr uint64_t kFromMs = 5'000;
  constexpr uint64_t kToMs = 25'000;
  Random random(20'261'121);
  for (uint64_t i = 0; i < kCount; ++i) {
    const uint64_t id = 20'001 + i;
    const uint64_t delay_ms = kFromMs + random.Below(kToMs - kFromMs);
    const std::string line = R"({"queue":"orders","key":"order:)" + std::to_string(id) +
                             R"(","delay":")" + std::to_string(delay_ms) + R"(ms","payload":)" +
                             Order(&random, id) + "}\n";
    std::fwrite(line.data(), 1, line.size(), stdout);
  }
  return 0;
}
