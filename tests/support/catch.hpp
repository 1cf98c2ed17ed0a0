#pragma once

// Catch2 2.13 (Debian 12) and 3.7 (Debian 13) under one name. Tests include this and nothing else
// of Catch2. Both versions offer TEST_CASE, SECTION, REQUIRE, CHECK, GENERATE, INFO and the
// matchers; what they spell differently (Approx, a text that contains another) is in
// gradsync::test.
#include <string>

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_all.hpp>
namespace gradsync::test {
using Catch::Approx;
inline auto contains(const std::string& text) {
  return Catch::Matchers::ContainsSubstring(text);
}
}  // namespace gradsync::test
#else
#include <catch2/catch.hpp>
namespace gradsync::test {
inline auto contains(const std::string& text) {
  return Catch::Matchers::Contains(text);
}
using Catch::Detail::Approx;
}  // namespace gradsync::test
#endif
