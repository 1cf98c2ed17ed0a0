#include "gradsync/simulator/collective/device_slots.hpp"
#include "tests/support/catch.hpp"

#include <vector>

namespace gradsync {
namespace {

TEST_CASE("a device's slots go to those that wait, in its own order") {
  const bool newest_first = GENERATE(false, true);
  CAPTURE(newest_first);
  DeviceSlots slots(1, newest_first);
  std::vector<int> started;
  const int who[3] = {0, 1, 2};
  const auto start = [&](int i) {
    if (slots.take(&who[i], [&started, i] { started.push_back(i); })) started.push_back(i);
  };
  start(0);
  start(1);
  start(2);
  start(1);  // waits already: keeps its place
  CHECK(started == std::vector<int>{0});
  // A retry that takes no slot leaves it to the next.
  slots.release();
  CHECK(started == (newest_first ? std::vector<int>{0, 2, 1} : std::vector<int>{0, 1, 2}));
  CHECK(slots.take(&who[0], [] {}));
  CHECK_FALSE(slots.take(&who[1], [] {}));
}

}  // namespace
}  // namespace gradsync
