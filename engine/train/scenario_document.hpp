#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/train/scenario.hpp"

namespace gradsync::scenario_table {

/// A scenario file as JSON with the overrides of the command line applied, and where each value
/// came from: what every error message about it is made of.
class ScenarioDocument {
 public:
  using Json = nlohmann::ordered_json;

  /// Throws ConfigError: text that is not JSON (with line and column), a key that is there twice, a
  /// path of an override that cannot be followed.
  ScenarioDocument(const std::string& text, std::string file,
                   const std::vector<ScenarioOverride>& overrides);

  const Json& json() const noexcept { return json_; }
  const std::string& file() const noexcept { return file_; }

  /// Throws ConfigError about the value at `pointer`. It names the override in place of the file
  /// where the value came from one. Where the document says nothing there, what was found is
  /// `by_default`, or "nothing" where that is null.
  [[noreturn]] void fail(const std::string& pointer, const std::string& expected,
                         const std::string& hint = {}, const Json& by_default = nullptr) const;

  /// Names another value that has a part in a mistake: "/ranks is 3", "/ranks is 3 by --ranks 3",
  /// "/ranks is 2 by default". `value` is what the scenario has there.
  std::string mention(const std::string& pointer, const Json& value) const;

  /// Whether the file or an override says something at `pointer`.
  bool has(const std::string& pointer) const;

 private:
  struct Origin {
    std::string pointer;
    std::string option;
  };

  void apply(const ScenarioOverride& override_);
  /// The override from which the value at `pointer` came; "" where it is the file's.
  std::string option_of(const std::string& pointer) const;

  Json json_;
  std::string file_;
  std::vector<Origin> origins_;
};

/// `key` as a reference token of a JSON pointer, with its slash: "/a~1b".
std::string pointer_token(const std::string& key);

}  // namespace gradsync::scenario_table
