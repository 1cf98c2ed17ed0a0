#include "gradsync/testbed/scenario/scenario_codec.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <regex>
#include <stdexcept>

#include <fmt/format.h>

#include "gradsync/testbed/scenario/scenario_hints.hpp"

namespace gradsync::scenario_table {
namespace {

constexpr double kLargestCount = std::numeric_limits<std::int32_t>::max();

bool has_minimum(const Rule& rule) {
  return std::isfinite(rule.minimum);
}
bool has_maximum(const Rule& rule) {
  return std::isfinite(rule.maximum);
}

bool within(double value, const Rule& rule) {
  return (rule.open_minimum ? value > rule.minimum : value >= rule.minimum) &&
         (rule.open_maximum ? value < rule.maximum : value <= rule.maximum);
}

/// ">= 1", "> 0", ">= 0 and < 1"; "" without bounds.
std::string bounds(const Rule& rule) {
  std::vector<std::string> parts;
  if (has_minimum(rule)) {
    parts.push_back(fmt::format("{} {}", rule.open_minimum ? ">" : ">=", rule.minimum));
  }
  if (has_maximum(rule)) {
    parts.push_back(fmt::format("{} {}", rule.open_maximum ? "<" : "<=", rule.maximum));
  }
  return enumerate(parts, "and");
}

std::string bounded(const std::string& noun, const Rule& rule) {
  const std::string text = bounds(rule);
  return text.empty() ? noun : noun + " " + text;
}

void add_bounds(Json& schema, const Rule& rule) {
  const auto number = [](double value) {
    return value == std::floor(value) ? Json(static_cast<std::int64_t>(value)) : Json(value);
  };
  if (has_minimum(rule)) {
    schema[rule.open_minimum ? "exclusiveMinimum" : "minimum"] = number(rule.minimum);
  }
  if (has_maximum(rule)) {
    schema[rule.open_maximum ? "exclusiveMaximum" : "maximum"] = number(rule.maximum);
  }
}

/// Whether the JSON number is an integer that a double represents exactly: 3, but also 3.0 and 1e3,
/// as in JSON Schema.
bool is_whole(const Json& value) {
  constexpr double kLargestExact = 9007199254740992.0;  // 2^53
  if (value.is_number_integer()) return true;
  if (!value.is_number_float()) return false;
  const double number = value.get<double>();
  return number == std::floor(number) && std::abs(number) <= kLargestExact;
}

/// Parses a quantity. `parse` is one of the parsers of units.hpp.
template <class Parse>
auto read_quantity(const Json& value, const Rule& rule, const std::string& expected, Parse parse,
                   double (*amount)(decltype(parse(std::string_view{})))) {
  if (value.is_number()) throw Mistake{expected, "give the unit, in quotes"};
  if (!value.is_string()) throw Mistake{expected};
  try {
    const auto quantity = parse(value.get_ref<const std::string&>());
    if (!within(amount(quantity), rule)) throw Mistake{expected, "it has to be " + bounds(rule)};
    return quantity;
  } catch (const QuantityError& error) {
    throw Mistake{expected, error.reason()};
  }
}

Json quantity_schema(Quantity quantity) {
  return {{"type", "string"}, {"pattern", quantity_pattern(quantity)}};
}

}  // namespace

std::string Codec<bool>::type(const Rule&) {
  return "true or false";
}
Json Codec<bool>::schema(const Rule&) {
  return {{"type", "boolean"}};
}
bool Codec<bool>::read(const Json& value, const Rule& rule) {
  if (!value.is_boolean()) throw Mistake{type(rule)};
  return value.get<bool>();
}
Json Codec<bool>::write(const bool& value) {
  return value;
}

std::string Codec<std::int64_t>::type(const Rule& rule) {
  return bounded("a whole number", rule);
}
Json Codec<std::int64_t>::schema(const Rule& rule) {
  Json schema{{"type", "integer"}};
  Rule bounded = rule;
  bounded.maximum = std::min(rule.maximum, kLargestCount);
  add_bounds(schema, bounded);
  return schema;
}
std::int64_t Codec<std::int64_t>::read(const Json& value, const Rule& rule) {
  if (!is_whole(value) || !within(value.get<double>(), rule)) {
    throw Mistake{type(rule)};
  }
  if (std::abs(value.get<double>()) > kLargestCount) {
    throw Mistake{fmt::format("a whole number <= {}", kLargestCount)};
  }
  return value.get<std::int64_t>();
}
Json Codec<std::int64_t>::write(const std::int64_t& value) {
  return value;
}

std::string Codec<std::uint64_t>::type(const Rule&) {
  return "a whole number >= 0";
}
Json Codec<std::uint64_t>::schema(const Rule&) {
  return {
      {"type", "integer"}, {"minimum", 0}, {"maximum", std::numeric_limits<std::uint64_t>::max()}};
}
std::uint64_t Codec<std::uint64_t>::read(const Json& value, const Rule& rule) {
  if (!is_whole(value) || (!value.is_number_unsigned() && value.get<double>() < 0)) {
    throw Mistake{type(rule)};
  }
  return value.get<std::uint64_t>();
}
Json Codec<std::uint64_t>::write(const std::uint64_t& value) {
  return value;
}

std::string Codec<double>::type(const Rule& rule) {
  return bounded("a number", rule);
}
Json Codec<double>::schema(const Rule& rule) {
  Json schema{{"type", "number"}};
  add_bounds(schema, rule);
  return schema;
}
double Codec<double>::read(const Json& value, const Rule& rule) {
  if (!value.is_number() || !within(value.get<double>(), rule)) {
    throw Mistake{type(rule)};
  }
  return value.get<double>();
}
Json Codec<double>::write(const double& value) {
  return value;
}

std::string Codec<std::string>::type(const Rule& rule) {
  if (!rule.choices.empty()) {
    std::vector<std::string> quoted;
    for (const std::string& choice : rule.choices) quoted.push_back("\"" + choice + "\"");
    return enumerate(quoted, "or");
  }
  if (!rule.pattern.empty()) return rule.pattern_name;
  return rule.is_file ? "the path of a file" : "a text";
}
Json Codec<std::string>::schema(const Rule& rule) {
  Json schema{{"type", "string"}};
  if (!rule.choices.empty()) schema["enum"] = rule.choices;
  if (!rule.pattern.empty()) schema["pattern"] = rule.pattern;
  if (rule.is_file) schema["minLength"] = 1;
  return schema;
}
std::string Codec<std::string>::read(const Json& value, const Rule& rule) {
  if (!value.is_string()) throw Mistake{type(rule)};
  const auto& text = value.get_ref<const std::string&>();
  if (!rule.choices.empty() &&
      std::find(rule.choices.begin(), rule.choices.end(), text) == rule.choices.end()) {
    throw Mistake{type(rule), did_you_mean(text, rule.choices)};
  }
  if (!rule.pattern.empty() && !std::regex_match(text, std::regex(rule.pattern))) {
    throw Mistake{type(rule)};
  }
  return text;
}
Json Codec<std::string>::write(const std::string& value) {
  return value;
}

std::string Codec<Seconds>::type(const Rule&) {
  return describe_quantity(Quantity::kDuration);
}
Json Codec<Seconds>::schema(const Rule&) {
  return quantity_schema(Quantity::kDuration);
}
Seconds Codec<Seconds>::read(const Json& value, const Rule& rule) {
  return read_quantity(value, rule, type(rule), parse_duration,
                       [](Seconds seconds) { return seconds.count(); });
}
Json Codec<Seconds>::write(const Seconds& value) {
  return format_duration(value);
}

std::string Codec<BytesPerSecond>::type(const Rule&) {
  return describe_quantity(Quantity::kBandwidth);
}
Json Codec<BytesPerSecond>::schema(const Rule&) {
  return quantity_schema(Quantity::kBandwidth);
}
BytesPerSecond Codec<BytesPerSecond>::read(const Json& value, const Rule& rule) {
  return read_quantity(value, rule, type(rule), parse_bandwidth,
                       [](BytesPerSecond bandwidth) { return bandwidth.value; });
}
Json Codec<BytesPerSecond>::write(const BytesPerSecond& value) {
  return format_bandwidth(value);
}

std::string Codec<FlopsPerSecond>::type(const Rule&) {
  return describe_quantity(Quantity::kComputeRate);
}
Json Codec<FlopsPerSecond>::schema(const Rule&) {
  return quantity_schema(Quantity::kComputeRate);
}
FlopsPerSecond Codec<FlopsPerSecond>::read(const Json& value, const Rule& rule) {
  return read_quantity(value, rule, type(rule), parse_compute_rate,
                       [](FlopsPerSecond rate) { return rate.value; });
}
Json Codec<FlopsPerSecond>::write(const FlopsPerSecond& value) {
  return format_compute_rate(value);
}

void require_list(const Json& value, std::ptrdiff_t size, const std::string& expected) {
  if (!value.is_array() || (size >= 0 && std::ssize(value) != size)) throw Mistake{expected};
}

Mistake in_item(Mistake mistake, std::size_t index) {
  mistake.pointer = fmt::format("/{}{}", index, mistake.pointer);
  return mistake;
}

std::string resolve_file(const std::string& path, const std::string& base_dir) {
  namespace fs = std::filesystem;
  const fs::path folder = base_dir.empty() ? fs::path(".") : fs::path(base_dir);
  const fs::path file = fs::absolute(folder / path).lexically_normal();
  std::error_code error;
  if (fs::is_regular_file(file, error)) return file.string();

  const std::string expected =
      fmt::format("the path of a file (relative to \"{}\")", folder.string());
  if (fs::is_directory(file, error)) throw Mistake{expected, "this is a folder"};
  const fs::path parent = file.parent_path();
  if (!fs::is_directory(parent, error)) {
    throw Mistake{expected, fmt::format("there is no folder \"{}\"", parent.string())};
  }
  std::vector<std::string> neighbours;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    if (entry.is_regular_file(error)) neighbours.push_back(entry.path().filename().string());
  }
  std::sort(neighbours.begin(), neighbours.end());  // directory order is unspecified
  const std::string hint = did_you_mean(file.filename().string(), neighbours);
  throw Mistake{expected, hint.empty() ? "there is no such file" : "no such file; " + hint};
}

Rule::~Rule() = default;
RowOptions::~RowOptions() = default;

Field describe_field(std::string_view name, std::string type, Json schema,
                     std::string_view description, const RowOptions& options) {
  Field row;
  row.name = name;
  row.description = description;
  row.type = std::move(type);
  row.schema = std::move(schema);
  row.kinds = options.kinds;
  row.examples = options.examples;
  row.default_text = options.default_text;
  row.other_names = options.other_names;
  row.required = options.required;
  return row;
}

#define GRADSYNC_NO_PREFIX
GRADSYNC_LOCATED_FIELDS(GRADSYNC_NO_PREFIX)

}  // namespace gradsync::scenario_table
