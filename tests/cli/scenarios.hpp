#pragma once

#include <string>
#include <vector>

#include "tests/support/paths.hpp"

namespace gradsync::test {

/// A scenario that ships with the repository.
inline std::string shipped(const std::string& name) {
  return gradsync::test::source_dir() + "/scenarios/" + name;
}

/// Options that make a shipped transformer scenario small: a step takes milliseconds.
inline std::vector<std::string> small_model() {
  return {"--set", "model.vocab_size=100",     "--set", "model.d_model=32",
          "--set", "model.dim_feedforward=64", "--set", "data.vocab_size=100"};
}

/// `run SCENARIO OPTIONS... MORE...`
inline std::vector<std::string> run_arguments(const std::string& scenario,
                                              std::vector<std::string> options,
                                              const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"run", scenario};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace gradsync::test
