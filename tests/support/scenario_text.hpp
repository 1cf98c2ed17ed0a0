#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"

namespace gradsync::test {

/// Parses `text` as the file test.json in the folder of the test data.
inline Scenario parse_test_scenario(const std::string& text,
                                    const std::vector<ScenarioOverride>& overrides = {}) {
  return parse_scenario(text, "test.json", test_data(), overrides);
}

/// What the parser has against `text`; the test fails if it has nothing.
inline ConfigError::Details mistake_in(const std::string& text,
                                       const std::vector<ScenarioOverride>& overrides = {}) {
  try {
    parse_test_scenario(text, overrides);
  } catch (const ConfigError& error) {
    return error.details();
  }
  FAIL("accepted: " + text);
  return {};
}

inline void write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file) << text;
}

}  // namespace gradsync::test
