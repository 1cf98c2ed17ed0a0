#include "tests/support/device_conformance.hpp"
#include "tests/support/catch.hpp"

TEST_CASE("the CPU device keeps the contract that every device is held to") {
  gradsync::test::check_device_conformance(gradsync::cpu_device());
}
