#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/core/units.hpp"

namespace gradsync {

/// Checked access to JSON that gradsync wrote, possibly from a process that was killed while
/// writing. Errors name the location ("report.steps[3].loss") and what was expected there.

/// A JSON object with its location.
class JsonFields {
 public:
  JsonFields(const nlohmann::ordered_json& json, std::string path)
      : json_(&json), path_(std::move(path)) {
    if (!json.is_object()) fail(path_, "an object", json);
  }

  const std::string& path() const noexcept { return path_; }
  std::string path_of(const char* key) const { return path_ + "." + key; }

  const nlohmann::ordered_json& at(const char* key) const {
    const auto found = json_->find(key);
    if (found == json_->end()) throw_error(path_of(key), "a value", "nothing");
    return *found;
  }

  JsonFields object(const char* key) const { return {at(key), path_of(key)}; }

  const nlohmann::ordered_json& array(const char* key) const {
    const auto& value = at(key);
    if (!value.is_array()) fail(path_of(key), "an array", value);
    return value;
  }

  void get(const char* key, std::string& out) const {
    const auto& value = at(key);
    if (!value.is_string()) fail(path_of(key), "a string", value);
    out = value.get<std::string>();
  }
  void get(const char* key, std::vector<std::string>& out) const {
    out.clear();
    for (const auto& element : array(key)) {
      if (!element.is_string()) fail(path_of(key), "a list of strings", element);
      out.push_back(element.get<std::string>());
    }
  }
  template <typename Integer>
  requires std::is_integral_v<Integer>
  void get(const char* key, std::vector<Integer>& out) const {
    out.clear();
    for (const auto& element : array(key)) out.push_back(integer<Integer>(element, path_of(key)));
  }
  template <typename Value>
  void get(const char* key, std::map<std::string, Value>& out) const {
    out.clear();
    const JsonFields members = object(key);
    for (const auto& [name, value] : members.json_->items()) {
      members.get(name.c_str(), out[name]);
    }
  }
  void get(const char* key, bool& out) const {
    const auto& value = at(key);
    if (!value.is_boolean()) fail(path_of(key), "true or false", value);
    out = value.get<bool>();
  }
  /// Reads a number; accepts the text form of a non-finite one.
  void get(const char* key, double& out) const { out = number(at(key), path_of(key)); }
  void get(const char* key, Seconds& out) const { out = Seconds{number(at(key), path_of(key))}; }
  template <typename Integer>
  requires std::is_integral_v<Integer>
  void get(const char* key, Integer& out) const { out = integer<Integer>(at(key), path_of(key)); }
  template <typename Integer>
  static Integer integer(const nlohmann::ordered_json& value, const std::string& path) {
    const bool fits = value.is_number_integer() &&
                      (value.is_number_unsigned()
                           ? value.get<std::uint64_t>() <=
                                 static_cast<std::uint64_t>(std::numeric_limits<Integer>::max())
                           : value.get<std::int64_t>() >= std::numeric_limits<Integer>::min() &&
                                 value.get<std::int64_t>() <= std::numeric_limits<Integer>::max());
    if (!fits) fail(path, "an integer", value);
    return value.get<Integer>();
  }
  /// null means absent.
  template <typename T>
  void get(const char* key, std::optional<T>& out) const {
    out.reset();
    if (at(key).is_null()) return;
    get(key, out.emplace());
  }
  /// Reads the enumerator among first ... last whose `to_string` is the given text.
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void get_word(const char* key, Enum& out, Enum first, Enum last) const {
    std::string word;
    get(key, word);
    for (int i = static_cast<int>(first); i <= static_cast<int>(last); ++i) {
      if (word == to_string(static_cast<Enum>(i))) {
        out = static_cast<Enum>(i);
        return;
      }
    }
    fail(path_of(key), fmt::format("a word such as \"{}\"", to_string(first)), at(key));
  }

  [[noreturn]] static void fail(const std::string& path, const std::string& expected,
                                const nlohmann::ordered_json& found) {
    std::string text = dump_json(found);
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    throw_error(path, expected, text);
  }

 private:
  [[noreturn]] static void throw_error(const std::string& path, const std::string& expected,
                                       const std::string& found) {
    throw Error(ErrorCode::kUsage, fmt::format("{}: expected {}, found {}", path, expected, found));
  }

  static double number(const nlohmann::ordered_json& value, const std::string& path) {
    if (value.is_number()) return value.get<double>();
    if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (value == "Infinity") return std::numeric_limits<double>::infinity();
    if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
    fail(path, "a number", value);
  }

  const nlohmann::ordered_json* json_;
  std::string path_;
};

/// A number as JSON. Non-finite values, which JSON cannot represent, become text.
inline nlohmann::ordered_json json_number(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

inline nlohmann::ordered_json json_number(const std::optional<double>& value) {
  return value ? json_number(*value) : nlohmann::ordered_json();
}

}  // namespace gradsync
