// The kinds of "model" and "data" that the program registered (registry.hpp).

#include <fmt/format.h>

#include "gradsync/testbed/scenario/scenario_hints.hpp"
#include "gradsync/testbed/scenario/scenario_table.hpp"

namespace gradsync::scenario_table {
namespace {

/// The JSON type of an option, by its default.
std::string type_of(const Json& value) {
  return value.is_number_integer() ? "integer" : value.type_name();
}

std::string words_of(const Json& value) {
  if (value.is_number_integer()) return "a whole number";
  if (value.is_number()) return "a number";
  if (value.is_boolean()) return "true or false";
  if (value.is_string()) return "text";
  return value.is_array() ? "a list" : "an object";
}

bool has_type_of(const Json& value, const Json& by_default) {
  if (by_default.is_null()) return true;
  if (by_default.is_number_integer()) return value.is_number_integer();
  if (by_default.is_number()) return value.is_number();
  return value.type() == by_default.type();
}

void check_option(const std::string& kind, const Json& defaults, const std::string& name,
                  const Json& value) {
  const std::string pointer = "/" + name;
  if (!defaults.contains(name)) {
    std::vector<std::string> names;
    for (const auto& [other, by_default] : defaults.items()) names.push_back(other);
    const std::string similar = did_you_mean(name, names);
    const std::string all =
        names.empty() ? "it has none" : "the options are " + enumerate(names, "and");
    throw Mistake{fmt::format("an option of \"{}\"", kind), similar.empty() ? all : similar,
                  pointer};
  }
  if (!has_type_of(value, defaults.at(name))) {
    throw Mistake{words_of(defaults.at(name)), "", pointer};
  }
}

Json options_schema(const std::string& declared) {
  Json schema{{"type", "object"}};
  if (declared.empty()) return schema;
  schema["properties"] = Json::object();
  const Json defaults = Json::parse(declared);
  for (const auto& [name, by_default] : defaults.items()) {
    schema["properties"][name] = {{"default", by_default}};
    if (!by_default.is_null()) schema["properties"][name]["type"] = type_of(by_default);
  }
  schema["additionalProperties"] = false;
  return schema;
}

template <class Spec>
Field options_field(const RegisteredKind& kind, Spec Scenario::*section) {
  const std::string declared = kind.description.options;
  Field row;
  row.name = "options";
  row.description = fmt::format("Options of `{}`, by their names.", kind.name);
  row.type = "an object";
  row.schema = options_schema(declared);
  row.read = [name = kind.name, declared, section](const Json& value, const std::string&,
                                                   const Object& object) {
    if (!value.is_object()) throw Mistake{"an object"};
    const Json defaults = declared.empty() ? Json::object() : Json::parse(declared);
    Json options = defaults;
    for (const auto& [key, option] : value.items()) {
      if (key.starts_with("//")) continue;  // a comment
      if (!declared.empty()) check_option(name, defaults, key, option);
      options[key] = option;
    }
    Scenario& scenario = object;
    (scenario.*section).registered.options = options.dump();
  };
  row.write = [section](const Object& object) {
    const Scenario& scenario = object;
    return Json::parse((scenario.*section).registered.options);
  };
  return row;
}

template <class Spec>
std::vector<Kind> with_registered(std::vector<Kind> kinds,
                                  const std::vector<RegisteredKind>& registered,
                                  Spec Scenario::*section) {
  for (const RegisteredKind& kind : registered) {
    const std::string& declared = kind.description.options;
    const RegisteredSpec spec{kind.name, declared.empty() ? "{}" : Json::parse(declared).dump()};
    kinds.push_back({.name = kind.name,
                     .description = kind.description.summary,
                     .select =
                         [spec, section](Scenario& scenario) {
                           (scenario.*section).kind = Spec::Kind::kRegistered;
                           (scenario.*section).registered = spec;
                         },
                     .selected =
                         [name = kind.name, section](const Scenario& scenario) {
                           const Spec& selected = scenario.*section;
                           return selected.kind == Spec::Kind::kRegistered &&
                                  selected.registered.kind == name;
                         },
                     .fields = {options_field(kind, section)}});
  }
  return kinds;
}

}  // namespace

std::vector<Kind> with_registered_models(std::vector<Kind> kinds) {
  return with_registered(std::move(kinds), registered_models(), &Scenario::model);
}

std::vector<Kind> with_registered_datasets(std::vector<Kind> kinds) {
  return with_registered(std::move(kinds), registered_datasets(), &Scenario::data);
}

}  // namespace gradsync::scenario_table
