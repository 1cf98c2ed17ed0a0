// The progress line of a long simulation.
#include <sstream>

#include "gradsync/predict/progress_line.hpp"
#include "tests/support/catch.hpp"

namespace gradsync {

TEST_CASE("progress line: nothing at first, then simulated time and rates, and it is wiped away") {
  using test::contains;
  std::ostringstream stream;
  Seconds wall{10};
  ProgressLine line(stream, [&] { return wall; });
  const auto events = [&](int count) {
    for (int k = 0; k < count; ++k) line.event(Seconds(1e-3));
  };
  events(640);
  line.step();
  line.step();
  line.clear();
  CHECK(stream.str().empty());
  wall = Seconds(12);
  events(640);
  CHECK_THAT(stream.str(),
             contains("simulated 0.704 s, 2 steps (1 per second), 352 events per second"));
  const auto once = stream.str();
  events(640);  // too soon for another
  CHECK(stream.str() == once);
  line.clear();
  CHECK(stream.str() == once + "\r\x1b[K");
  wall = Seconds(13);
  events(64);
  CHECK(stream.str().size() > once.size() + 10);
}

}  // namespace gradsync
