#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "gradsync/testbed/scenario/scenario_table.hpp"

/// The mapping between C++ types and JSON, and the builder of the table's rows. `field` deduces the
/// type from the member, so a row states only what the type does not.
///
/// A section is one expression with dozens of rows. What such an expression constructs and destroys
/// is therefore out of line: inlined, it took the compiler longer than all else in these files.
namespace gradsync::scenario_table {

/// Constraints on a value beyond its type. In a list, they apply to each item.
struct Rule {
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool open_minimum = false;  ///< excludes the minimum itself
  bool open_maximum = false;
  std::vector<std::string> choices = {};  ///< for text
  std::string pattern = {};               ///< for text: a regular expression
  std::string pattern_name = {};          ///< the pattern's name, with its article
  bool is_file = false;                   ///< text that names an existing file

  ~Rule();
};

inline Rule any() {
  return {};
}
inline Rule at_least(double minimum) {
  return {.minimum = minimum};
}
inline Rule above(double minimum) {
  return {.minimum = minimum, .open_minimum = true};
}
inline Rule between(double minimum, double maximum) {
  return {.minimum = minimum, .maximum = maximum};
}
/// In [minimum, maximum).
inline Rule from_to_below(double minimum, double maximum) {
  return {.minimum = minimum, .maximum = maximum, .open_maximum = true};
}
inline Rule one_of(std::vector<std::string> choices) {
  return {.choices = std::move(choices)};
}
inline Rule matching(std::string pattern, std::string name) {
  return {.pattern = std::move(pattern), .pattern_name = std::move(name)};
}
inline Rule existing_file() {
  return {.is_file = true};
}

/// The names of an enumeration's values in the file: specialize with `static constexpr
/// std::array<std::pair<const char*, E>, N> kNames`.
template <class E>
struct EnumNames;

/// Every Codec has
///   type(rule)         the expectation in words: "a whole number >= 1"
///   schema(rule)       draft-07
///   read(value, rule)  throws Mistake
///   write(value)
template <class T>
struct Codec;

#define GRADSYNC_DECLARE_CODEC(T)                       \
  template <>                                           \
  struct Codec<T> {                                     \
    static std::string type(const Rule& rule);          \
    static Json schema(const Rule& rule);               \
    static T read(const Json& value, const Rule& rule); \
    static Json write(const T& value);                  \
  }
GRADSYNC_DECLARE_CODEC(bool);
GRADSYNC_DECLARE_CODEC(std::int64_t);   // at most 2^31-1, so that a product of two cannot overflow
GRADSYNC_DECLARE_CODEC(std::uint64_t);  // seeds
GRADSYNC_DECLARE_CODEC(double);
GRADSYNC_DECLARE_CODEC(std::string);
GRADSYNC_DECLARE_CODEC(Seconds);
GRADSYNC_DECLARE_CODEC(BytesPerSecond);
GRADSYNC_DECLARE_CODEC(FlopsPerSecond);
#undef GRADSYNC_DECLARE_CODEC

/// An enumeration is text with the choices of its EnumNames; it ignores the row's rule.
template <class E>
requires std::is_enum_v<E>
struct Codec<E> {
  static Rule rule() {
    Rule rule;
    for (const auto& [name, value] : EnumNames<E>::kNames) rule.choices.push_back(name);
    return rule;
  }
  static std::string type(const Rule&) { return Codec<std::string>::type(rule()); }
  static Json schema(const Rule&) { return Codec<std::string>::schema(rule()); }
  static E read(const Json& json, const Rule&) {
    const std::string text = Codec<std::string>::read(json, rule());
    for (const auto& [name, value] : EnumNames<E>::kNames) {
      if (text == name) return value;
    }
    throw Mistake{type({})};
  }
  static Json write(const E& written) {
    for (const auto& [name, value] : EnumNames<E>::kNames) {
      if (written == value) return name;
    }
    return nullptr;
  }
};

/// null means unset.
template <class T>
struct Codec<std::optional<T>> {
  static std::string type(const Rule& rule) { return Codec<T>::type(rule) + ", or null"; }
  static Json schema(const Rule& rule) {
    Json schema = Codec<T>::schema(rule);
    schema["type"] = Json::array({schema.at("type"), "null"});
    if (schema.contains("enum")) schema["enum"].push_back(nullptr);
    return schema;
  }
  static std::optional<T> read(const Json& value, const Rule& rule) {
    if (value.is_null()) return std::nullopt;
    try {
      return Codec<T>::read(value, rule);
    } catch (Mistake& mistake) {
      mistake.expected += ", or null";
      throw;
    }
  }
  static Json write(const std::optional<T>& value) {
    return value ? Codec<T>::write(*value) : Json(nullptr);
  }
};

/// Checks that `value` is a list, with `size` items unless that is negative; throws Mistake.
void require_list(const Json& value, std::ptrdiff_t size, const std::string& expected);
/// The mistake of an item, with the item's index prepended to its pointer.
Mistake in_item(Mistake mistake, std::size_t index);

template <class T>
struct Codec<std::vector<T>> {
  static std::string type(const Rule& rule) { return "a list; each item " + Codec<T>::type(rule); }
  static Json schema(const Rule& rule) {
    return {{"type", "array"}, {"items", Codec<T>::schema(rule)}};
  }
  static std::vector<T> read(const Json& value, const Rule& rule) {
    require_list(value, -1, type(rule));
    std::vector<T> items;
    for (std::size_t i = 0; i < value.size(); ++i) {
      try {
        items.push_back(Codec<T>::read(value[i], rule));
      } catch (const Mistake& mistake) {
        throw in_item(mistake, i);
      }
    }
    return items;
  }
  static Json write(const std::vector<T>& value) {
    Json items = Json::array();
    for (const T& item : value) items.push_back(Codec<T>::write(item));
    return items;
  }
};

template <class T, std::size_t N>
struct Codec<std::array<T, N>> {
  static std::string type(const Rule& rule) {
    return "a list of " + std::to_string(N) + "; each item " + Codec<T>::type(rule);
  }
  static Json schema(const Rule& rule) {
    Json schema = Codec<std::vector<T>>::schema(rule);
    schema["minItems"] = N;
    schema["maxItems"] = N;
    return schema;
  }
  static std::array<T, N> read(const Json& value, const Rule& rule) {
    require_list(value, N, type(rule));
    const std::vector<T> items = Codec<std::vector<T>>::read(value, rule);
    std::array<T, N> array{};
    std::copy(items.begin(), items.end(), array.begin());
    return array;
  }
  static Json write(const std::array<T, N>& value) { return Json(value); }
};

/// Converts a path from the file to an absolute path; throws Mistake if the file does not exist.
std::string resolve_file(const std::string& path, const std::string& base_dir);

/// The optional parts of a row; see Field.
struct RowOptions {
  std::vector<std::string> kinds = {};
  std::vector<Json> examples = {};
  std::string default_text = {};
  std::vector<std::string> other_names = {};
  bool required = false;

  ~RowOptions();
};

/// Fills in what a row has beside its value.
Field describe_field(std::string_view name, std::string type, Json schema,
                     std::string_view description, const RowOptions& options);

/// A row whose value is not a single member: `get` returns a T, `set` takes one. Each takes a
/// reference to the section's object, of its type.
template <class T, class Get, class Set>
Field computed_field(std::string_view name, Get get, Set set, const Rule& rule,
                     std::string_view description, const RowOptions& options = {}) {
  Field row =
      describe_field(name, Codec<T>::type(rule), Codec<T>::schema(rule), description, options);
  row.read = [set, rule](const Json& value, const std::string&, const Object& object) {
    set(object, Codec<T>::read(value, rule));
  };
  row.write = [get](const Object& object) { return Codec<T>::write(get(object)); };
  return row;
}

/// Finds a row's member in the section's object.
template <class T>
using Locate = std::function<const T&(const Object& object)>;

/// A row for the member that `locate` finds. One function per type of member and not per row: the
/// tables have hundreds of rows.
template <class T>
Field located_field(std::string_view name, const Locate<T>& locate, const Rule& rule,
                    std::string_view description, const RowOptions& options) {
  Field row =
      describe_field(name, Codec<T>::type(rule), Codec<T>::schema(rule), description, options);
  row.read = [locate, rule](const Json& value, const std::string& base_dir, const Object& object) {
    T typed = Codec<T>::read(value, rule);
    if constexpr (std::is_same_v<T, std::string>) {
      if (rule.is_file) typed = resolve_file(typed, base_dir);
    }
    // A reader's object is never const, but one function finds the member for reader and writer.
    const_cast<T&>(locate(object)) = std::move(typed);
  };
  row.write = [locate](const Object& object) { return Codec<T>::write(locate(object)); };
  return row;
}

// The usual types, compiled once.
#define GRADSYNC_LOCATED_FIELD(prefix, ...)                                                      \
  prefix template Field located_field<__VA_ARGS__>(std::string_view, const Locate<__VA_ARGS__>&, \
                                                   const Rule&, std::string_view,                \
                                                   const RowOptions&);
#define GRADSYNC_LOCATED_FIELDS(prefix)                       \
  GRADSYNC_LOCATED_FIELD(prefix, bool)                        \
  GRADSYNC_LOCATED_FIELD(prefix, std::int64_t)                \
  GRADSYNC_LOCATED_FIELD(prefix, std::uint64_t)               \
  GRADSYNC_LOCATED_FIELD(prefix, double)                      \
  GRADSYNC_LOCATED_FIELD(prefix, std::string)                 \
  GRADSYNC_LOCATED_FIELD(prefix, Seconds)                     \
  GRADSYNC_LOCATED_FIELD(prefix, std::optional<bool>)         \
  GRADSYNC_LOCATED_FIELD(prefix, std::optional<std::int64_t>) \
  GRADSYNC_LOCATED_FIELD(prefix, std::optional<double>)       \
  GRADSYNC_LOCATED_FIELD(prefix, std::optional<Seconds>)      \
  GRADSYNC_LOCATED_FIELD(prefix, std::vector<std::int64_t>)   \
  GRADSYNC_LOCATED_FIELD(prefix, std::vector<double>)         \
  GRADSYNC_LOCATED_FIELD(prefix, std::vector<std::string>)
GRADSYNC_LOCATED_FIELDS(extern)

/// A row for a member. `member` takes a scenario, const or not, and returns a reference into it
/// (SCENARIO_MEMBER).
template <class Member>
Field field(std::string_view name, Member member, const Rule& rule, std::string_view description,
            const RowOptions& options = {}) {
  using T = std::remove_cvref_t<decltype(member(std::declval<Scenario&>()))>;
  const Locate<T> locate = [member](const Object& object) -> const T& {
    return member(static_cast<const Scenario&>(object));
  };
  return located_field<T>(name, locate, rule, description, options);
}

/// A row for a member of a list's item.
template <class Item, class T>
Field field(std::string_view name, T Item::*member, const Rule& rule, std::string_view description,
            const RowOptions& options = {}) {
  const Locate<T> locate = [member](const Object& object) -> const T& {
    return static_cast<const Item&>(object).*member;
  };
  return located_field<T>(name, locate, rule, description, options);
}

/// A kind selected by a value of a member (SCENARIO_MEMBER of an enumeration).
template <class Member, class E>
Kind enum_kind(std::string name, std::string description, Member member, E value) {
  return {std::move(name), std::move(description),
          [=](Scenario& scenario) { member(scenario) = value; },
          [=](const Scenario& scenario) { return member(scenario) == value; }};
}

/// A section whose key holds a list of Items. `list` takes a scenario, const or not, and returns a
/// reference to the list in it (SCENARIO_MEMBER).
template <class Item, class Member>
Section list_section(std::string name, std::string description, Member list,
                     std::vector<Field> fields, std::vector<Kind> kinds = {}) {
  Section section;
  section.name = std::move(name);
  section.description = std::move(description);
  section.kinds = std::move(kinds);
  section.fields = std::move(fields);
  section.list =
      Section::List{[list](Scenario& scenario) { return Object(&list(scenario).emplace_back()); },
                    [list](const Scenario& scenario) {
                      std::vector<Object> items;
                      for (const Item& item : list(scenario)) items.emplace_back(&item);
                      return items;
                    }};
  section.with_default = with_new<Item>;
  return section;
}

#define SCENARIO_MEMBER(path) \
  [](auto& s) -> auto& {      \
    return s.path;            \
  }

}  // namespace gradsync::scenario_table
