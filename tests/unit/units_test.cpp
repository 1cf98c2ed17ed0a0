#include "gradsync/core/units.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <regex>
#include <stdexcept>

#include "tests/support/catch.hpp"

using namespace gradsync;
using gradsync::test::contains;

TEST_CASE("units: durations are the double nearest to the decimal text") {
  CHECK(parse_duration("5us").count() == 5e-6);
  CHECK(parse_duration("35us").count() == 35e-6);
  CHECK(parse_duration("1.1us").count() == 1.1e-6);
  CHECK(parse_duration("3ns").count() == 3e-9);
  CHECK(parse_duration("10ms").count() == 10e-3);
  CHECK(parse_duration("1.5s").count() == 1.5);
  CHECK(parse_duration("0s").count() == 0);
  CHECK(parse_duration("2min").count() == 120);
  CHECK(parse_duration("1h").count() == 3600);
  CHECK(parse_duration("1e-3s").count() == 1e-3);
  CHECK(parse_duration("2E+1ms").count() == 0.02);
}

TEST_CASE("units: decimal and binary prefixes, bits and bytes") {
  CHECK(parse_bytes("1048576B") == 1048576);
  CHECK(parse_bytes("1kB") == 1000);
  CHECK(parse_bytes("1KiB") == 1024);
  CHECK(parse_bytes("10MB") == 10000000);
  CHECK(parse_bytes("25MiB") == 26214400);
  CHECK(parse_bytes("2GB") == 2000000000);
  CHECK(parse_bytes("2GiB") == 2147483648);
  CHECK(parse_bytes("1TB") == 1000000000000);
  CHECK(parse_bytes("1TiB") == 1099511627776);
  CHECK(parse_bytes("1.5KiB") == 1536);
  CHECK(parse_bytes("8b") == 1);
  CHECK(parse_bytes("8Mib") == 1048576);
  CHECK(parse_bytes("0B") == 0);
  CHECK(parse_bytes("8192TiB") == 9007199254740992);

  CHECK(parse_bandwidth("7Bps").value == 7);
  CHECK(parse_bandwidth("3kBps").value == 3e3);
  CHECK(parse_bandwidth("12.5MBps").value == 12.5e6);
  CHECK(parse_bandwidth("25GBps").value == 25e9);
  CHECK(parse_bandwidth("200Gbps").value == 25e9);
  CHECK(parse_bandwidth("1.6Tbps").value == 200e9);
  CHECK(parse_bandwidth("1TBps").value == 1e12);
  CHECK(parse_bandwidth("2KiBps").value == 2048);
  CHECK(parse_bandwidth("1GiBps").value == 1073741824);
  CHECK(parse_bandwidth("8bps").value == 1);

  CHECK(parse_compute_rate("1f").value == 1);
  CHECK(parse_compute_rate("50Gf").value == 50e9);
  CHECK(parse_compute_rate("1.5Tf").value == 1.5e12);
  CHECK(parse_compute_rate("1Mif").value == 1048576);
}

TEST_CASE("units: a text that is no quantity is refused with what was expected") {
  const auto duration_refused = [](const char* text, const char* why) {
    INFO(text);
    CHECK_THROWS_AS(parse_duration(text), std::invalid_argument);
    CHECK_THROWS_WITH(parse_duration(text),
                      contains("expected a duration such as \"5ms\"") && contains(why));
  };
  duration_refused("", "start with a number");
  duration_refused("ms", "start with a number");
  duration_refused("-5ms", "not negative");
  duration_refused("+5ms", "start with a number");
  duration_refused(".5s", "start with a number");
  duration_refused(" 5ms", "start with a number");
  duration_refused("infs", "start with a number");
  duration_refused("nans", "start with a number");
  duration_refused("5", "the unit is missing (s, ms, us, ns, min, h)");
  duration_refused("0", "the unit is missing");
  duration_refused("5 ms", "unknown unit \" ms\"");
  duration_refused("5m", "unknown unit \"m\"");
  duration_refused("5MS", "unknown unit \"MS\"");
  duration_refused("5ms ", "unknown unit \"ms \"");
  duration_refused("5mss", "unknown unit \"mss\"");
  duration_refused("5GBps", "unknown unit \"GBps\"");
  duration_refused("1e999s", "out of range");
  duration_refused("1e308h", "out of range");
  duration_refused("0x5s", "unknown unit \"x5s\"");

  CHECK_THROWS_WITH(parse_bandwidth("25"), contains("expected a bandwidth such as \"25GBps\""));
  CHECK_THROWS_WITH(parse_bandwidth("25GB"), contains("unknown unit \"GB\""));
  CHECK_THROWS_WITH(parse_bandwidth("25GB/s"), contains("unknown unit \"GB/s\""));
  CHECK_THROWS_WITH(parse_bandwidth("25gbps"), contains("unknown unit \"gbps\""));
  CHECK_THROWS_WITH(parse_bytes("25M"), contains("expected an amount of memory"));
  CHECK_THROWS_WITH(parse_bytes("0.5B"), contains("not a whole number of bytes"));
  CHECK_THROWS_WITH(parse_bytes("4b"), contains("not a whole number of bytes"));
  CHECK_THROWS_WITH(parse_bytes("8193TiB"), contains("more than 8192TiB"));
  CHECK_THROWS_WITH(parse_compute_rate("50GFLOPS"), contains("expected a compute rate"));
}

TEST_CASE("units: a text with an embedded zero byte is refused") {
  CHECK_THROWS_AS(parse_duration(std::string_view("5s\0", 3)), std::invalid_argument);
}

TEST_CASE("units: values are written in the shortest text") {
  CHECK(format_duration(Seconds{0}) == "0s");
  CHECK(format_duration(Seconds{30}) == "30s");
  CHECK(format_duration(Seconds{5e-6}) == "5us");
  CHECK(format_duration(Seconds{35e-6}) == "35us");
  CHECK(format_duration(Seconds{1e-3}) == "1ms");
  CHECK(format_duration(Seconds{1.5}) == "1.5s");
  CHECK(format_duration(Seconds{3600}) == "1h");
  CHECK(format_bandwidth({25e9}) == "25GBps");
  CHECK(format_bandwidth({12.5e9}) == "12.5GBps");
  CHECK(format_bandwidth({1.25e9}) == "1.25GBps");
  CHECK(format_bandwidth({25.0 * 1073741824}) == "25GiBps");
  CHECK(format_bandwidth({0}) == "0Bps");
  CHECK(format_bandwidth(parse_bandwidth("200Gbps")) == "25GBps");
  CHECK(format_compute_rate({50e9}) == "50Gf");
  CHECK(format_compute_rate({1.5e12}) == "1.5Tf");
}

TEST_CASE("units: what is written reads back to the same bits, and the schema's pattern takes it") {
  const std::regex duration(quantity_pattern(Quantity::kDuration));
  const std::regex bandwidth(quantity_pattern(Quantity::kBandwidth));
  const std::regex rate(quantity_pattern(Quantity::kComputeRate));
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-12, 18);
  for (int i = 0; i < 2000; ++i) {
    const double value = std::pow(10.0, exponent(random));
    const std::string d = format_duration(Seconds{value});
    const std::string b = format_bandwidth({value});
    const std::string f = format_compute_rate({value});
    CAPTURE(value, d, b, f);
    REQUIRE(parse_duration(d).count() == value);
    REQUIRE(parse_bandwidth(b).value == value);
    REQUIRE(parse_compute_rate(f).value == value);
    REQUIRE(std::regex_match(d, duration));
    REQUIRE(std::regex_match(b, bandwidth));
    REQUIRE(std::regex_match(f, rate));
  }
  for (const double extreme :
       {std::numeric_limits<double>::min(), std::numeric_limits<double>::denorm_min(),
        std::numeric_limits<double>::max()}) {
    CHECK(parse_duration(format_duration(Seconds{extreme})).count() == extreme);
    CHECK(parse_bandwidth(format_bandwidth({extreme})).value == extreme);
  }
}

TEST_CASE("units: the pattern of a quantity takes what its parser takes") {
  const std::regex pattern(quantity_pattern(Quantity::kDuration));
  for (const char* text : {"5us", "1.5s", "2min", "1e3ms", "5.s", "0h"}) {
    INFO(text);
    CHECK(std::regex_match(text, pattern));
    CHECK_NOTHROW(parse_duration(text));
  }
  for (const char* text : {"5", "5m", "-1s", "5 s", ".5s", "s", "", "1e3", "5s\n"}) {
    INFO(text);
    CHECK_FALSE(std::regex_match(text, pattern));
    CHECK_THROWS_AS(parse_duration(text), std::invalid_argument);
  }
}

TEST_CASE("units: bytes for people have two significant digits") {
  CHECK(format_bytes_human(0) == "0 B");
  CHECK(format_bytes_human(999) == "999 B");
  CHECK(format_bytes_human(1000) == "1.0 kB");
  CHECK(format_bytes_human(6000000) == "6.0 MB");
  CHECK(format_bytes_human(1344904432) == "1.3 GB");
  CHECK(format_bytes_human(9949999) == "9.9 MB");
  CHECK(format_bytes_human(9950000) == "10 MB");
  CHECK(format_bytes_human(340000000) == "340 MB");
  CHECK(format_bytes_human(999499) == "999 kB");
  CHECK(format_bytes_human(999500) == "1.0 MB");
  CHECK(format_bytes_human(std::numeric_limits<Bytes>::max()) == "9.2 EB");
}
