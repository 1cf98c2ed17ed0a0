#include "gradsync/testbed/scenario/registry.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/testbed/scenario/scenario_hints.hpp"
#include "gradsync/testbed/scenario/scenario_table.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
T get(const KindOptions& options, const std::string& place, std::string_view name,
      const char* expected, bool (*fits)(const Json&)) {
  const Json json = Json::parse(options.json());
  const auto found = json.find(std::string(name));
  if (found != json.end() && fits(*found)) return found->template get<T>();
  throw ConfigError({"", place + "/" + std::string(name), expected,
                     found == json.end() ? "nothing" : scenario_table::shortened(*found), ""});
}

void check(const std::string& section, const std::string& kind, const KindDescription& description,
           bool is_taken) {
  const auto refuse = [&](const std::string& reason) {
    throw Error(ErrorCode::kMisuse,
                "cannot register the kind \"" + kind + "\" of \"" + section + "\": " + reason);
  };
  if (kind.empty()) refuse("it needs a name");
  for (const scenario_table::Section& known : scenario_table::root().sections) {
    if (known.name != section) continue;
    is_taken = is_taken || std::ranges::any_of(known.kinds, [&](const scenario_table::Kind& other) {
                 return other.name == kind;
               });
  }
  if (is_taken) refuse("there is one of this name");
  const std::string& defaults = description.defaults;
  if (!defaults.empty() && !Json::parse(defaults, nullptr, false).is_object()) {
    refuse("its defaults are not a JSON object: " + defaults);
  }
}

template <class Map>
auto find(const Map& kinds, const std::string& name) {
  const auto found = kinds.find(name);
  return found == kinds.end() ? nullptr : found->second;
}

template <class Map>
std::vector<std::shared_ptr<const RegisteredKind>> list(const Map& kinds) {
  std::vector<std::shared_ptr<const RegisteredKind>> result;
  for (const auto& [name, kind] : kinds) result.push_back(kind);
  return result;
}

}  // namespace

std::int64_t KindOptions::integer(std::string_view name) const {
  return get<std::int64_t>(*this, place_, name, "a whole number",
                           [](const Json& value) { return value.is_number_integer(); });
}

double KindOptions::number(std::string_view name) const {
  return get<double>(*this, place_, name, "a number",
                     [](const Json& value) { return value.is_number(); });
}

bool KindOptions::flag(std::string_view name) const {
  return get<bool>(*this, place_, name, "true or false",
                   [](const Json& value) { return value.is_boolean(); });
}

std::string KindOptions::text(std::string_view name) const {
  return get<std::string>(*this, place_, name, "a text",
                          [](const Json& value) { return value.is_string(); });
}

void Registry::register_model(const std::string& kind, ModelFactory make,
                              const KindDescription& description) {
  check("model", kind, description, models_.contains(kind));
  models_[kind] = std::make_shared<const RegisteredModel>(
      RegisteredModel{{kind, description}, std::move(make)});
}

void Registry::register_dataset(const std::string& kind, DatasetFactory make,
                                const KindDescription& description) {
  check("data", kind, description, datasets_.contains(kind));
  datasets_[kind] = std::make_shared<const RegisteredDataset>(
      RegisteredDataset{{kind, description}, std::move(make)});
}

std::shared_ptr<const RegisteredModel> Registry::find_model(const std::string& kind) const {
  return find(models_, kind);
}

std::shared_ptr<const RegisteredDataset> Registry::find_dataset(const std::string& kind) const {
  return find(datasets_, kind);
}

std::vector<std::shared_ptr<const RegisteredKind>> Registry::models() const {
  return list(models_);
}

std::vector<std::shared_ptr<const RegisteredKind>> Registry::datasets() const {
  return list(datasets_);
}

}  // namespace gradsync
