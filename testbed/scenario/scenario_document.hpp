#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync::scenario_table {

/// A scenario file as JSON with the command line's overrides applied, and the origin of each value
/// for error messages.
class ScenarioDocument {
 public:
  using Json = nlohmann::ordered_json;

  /// Throws ConfigError for text that is not JSON (with line and column), a duplicate key, an
  /// override path that cannot be resolved, or a section's file that cannot be read. Files in place
  /// of a section (Section::accepts_file), also those named by an override, are relative to
  /// `base_dir`; their content becomes part of this document.
  ScenarioDocument(const std::string& text, std::string file, const std::string& base_dir,
                   const std::vector<ScenarioOverride>& overrides);

  const Json& json() const noexcept { return json_; }
  const std::string& file() const noexcept { return file_; }

  /// Throws ConfigError about the value at `pointer`. If an override set the value, the error names
  /// the override instead of the file. If the document has no value there, the error reports
  /// `by_default` as found, or "nothing" if that is null.
  [[noreturn]] void fail(const std::string& pointer, const std::string& expected,
                         const std::string& hint = {}, const Json& by_default = nullptr) const;

  /// Mentions another value involved in an error: "/ranks is 3", "/ranks is 3 by --ranks 3",
  /// "/ranks is 2 by default". `value` is the scenario's value there.
  std::string mention(const std::string& pointer, const Json& value) const;

  /// Whether the file or an override sets a value at `pointer`.
  bool has(const std::string& pointer) const;

 private:
  /// The origin of the values at and below `pointer`, if it is not the document's own file.
  struct Origin {
    std::string pointer;
    std::string name;      ///< an override's option, or another file
    bool is_file = false;  ///< a file, whose own pointers start below `pointer`
  };

  void apply(const ScenarioOverride& override_);
  /// Replaces sections that are paths by the contents of those files.
  void include_files(const std::string& base_dir);
  /// The last origin of the value at `pointer`; null for the document's own file.
  const Origin* origin_of(const std::string& pointer) const;

  Json json_;
  std::string file_;
  std::vector<Origin> origins_;
};

/// `key` as a JSON pointer token, with its slash: "/a~1b".
std::string pointer_token(const std::string& key);

}  // namespace gradsync::scenario_table
