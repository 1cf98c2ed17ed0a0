#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync::scenario_table {

/// A scenario file as JSON with the overrides of the command line applied, and where each value
/// came from: what every error message about it is made of.
class ScenarioDocument {
 public:
  using Json = nlohmann::ordered_json;

  /// Throws ConfigError: text that is not JSON (with line and column), a key that is there twice, a
  /// path of an override that cannot be followed, a section's file that cannot be read. Files that
  /// stand for a section (Section::accepts_file) are relative to `base_dir`, as are those that an
  /// override names; what such a file says is then JSON of this document like the rest.
  ScenarioDocument(const std::string& text, std::string file, const std::string& base_dir,
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
  /// Where the values at and below `pointer` came from, when not from the document's own file.
  struct Origin {
    std::string pointer;
    std::string name;      ///< an override's option, or another file
    bool is_file = false;  ///< whose own pointers start below `pointer`
  };

  void apply(const ScenarioOverride& override_);
  /// Puts the contents of files in the place of sections that are paths.
  void include_files(const std::string& base_dir);
  /// The last origin of the value at `pointer`; null where it is the document's own file.
  const Origin* origin_of(const std::string& pointer) const;

  Json json_;
  std::string file_;
  std::vector<Origin> origins_;
};

/// `key` as a reference token of a JSON pointer, with its slash: "/a~1b".
std::string pointer_token(const std::string& key);

}  // namespace gradsync::scenario_table
