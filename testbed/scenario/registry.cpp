#include "gradsync/testbed/scenario/registry.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/data/dataset.hpp"
#include "gradsync/models/model.hpp"
#include "gradsync/testbed/scenario/scenario_hints.hpp"
#include "gradsync/testbed/scenario/scenario_table.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

template <class Factory>
struct Entry {
  Factory factory;
  KindDescription description;
};
template <class Factory>
using Entries = std::map<std::string, Entry<Factory>>;

struct Registry {
  std::mutex mutex;
  Entries<ModelFactory> models;
  Entries<DatasetFactory> datasets;
};

Registry& registry() {
  static Registry registry;
  return registry;
}

bool is_in_table(const std::string& section, const std::string& kind) {
  for (const scenario_table::Section& known : scenario_table::root().sections) {
    if (known.name != section) continue;
    return std::ranges::any_of(known.kinds, [&](const auto& other) { return other.name == kind; });
  }
  return false;
}

template <class Factory>
void add(const std::string& section, Entries<Factory>& entries, const std::string& kind,
         Factory factory, KindDescription description) {
  const auto refuse = [&](const std::string& reason) {
    throw Error(ErrorCode::kMisuse, fmt::format("cannot register the kind \"{}\" of \"{}\": {}",
                                                kind, section, reason));
  };
  if (kind.empty()) refuse("it needs a name");
  if (!factory) refuse("it needs a factory");
  const std::string& options = description.options;
  if (!options.empty() && !Json::parse(options, nullptr, false).is_object()) {
    refuse("its options are not a JSON object: " + options);
  }
  const bool is_taken = is_in_table(section, kind);
  const std::scoped_lock lock(registry().mutex);
  if (is_taken || entries.contains(kind)) refuse("this name is taken");
  entries[kind] = {std::move(factory), std::move(description)};
}

template <class Factory>
Factory find(const std::string& section, const Entries<Factory>& entries, const std::string& kind) {
  const std::scoped_lock lock(registry().mutex);
  const auto found = entries.find(kind);
  if (found != entries.end()) return found->second.factory;
  throw Error(ErrorCode::kMisuse,
              fmt::format("no kind \"{}\" of \"{}\" is registered in this process; register it at "
                          "the start of main",
                          kind, section));
}

template <class T>
std::unique_ptr<T> made(std::unique_ptr<T> object, const std::string& kind) {
  if (object) return object;
  throw Error(ErrorCode::kMisuse,
              fmt::format("the factory of the registered kind \"{}\" returned null", kind));
}

template <class Factory>
std::vector<RegisteredKind> list(const Entries<Factory>& entries) {
  const std::scoped_lock lock(registry().mutex);
  std::vector<RegisteredKind> kinds;
  for (const auto& [name, entry] : entries) kinds.push_back({name, entry.description});
  return kinds;
}

template <class T>
T get(const std::string& json, const std::string& pointer, std::string_view name,
      const char* expected, bool (*fits)(const Json&)) {
  const Json options = Json::parse(json);
  const auto found = options.find(std::string(name));
  if (found != options.end() && fits(*found)) return found->template get<T>();
  throw ConfigError({"", fmt::format("{}/{}", pointer, name), expected,
                     found == options.end() ? "no such option" : scenario_table::shortened(*found),
                     ""});
}

}  // namespace

std::int64_t KindOptions::integer(std::string_view name) const {
  return get<std::int64_t>(json_, pointer_, name, "a whole number",
                           [](const Json& value) { return value.is_number_integer(); });
}

double KindOptions::number(std::string_view name) const {
  return get<double>(json_, pointer_, name, "a number",
                     [](const Json& value) { return value.is_number(); });
}

bool KindOptions::flag(std::string_view name) const {
  return get<bool>(json_, pointer_, name, "true or false",
                   [](const Json& value) { return value.is_boolean(); });
}

std::string KindOptions::text(std::string_view name) const {
  return get<std::string>(json_, pointer_, name, "text",
                          [](const Json& value) { return value.is_string(); });
}

void register_model(const std::string& kind, ModelFactory factory, KindDescription description) {
  add("model", registry().models, kind, std::move(factory), std::move(description));
}

void register_dataset(const std::string& kind, DatasetFactory factory,
                      KindDescription description) {
  add("data", registry().datasets, kind, std::move(factory), std::move(description));
}

// The factories are called without the lock: they may take long, and may register kinds.

std::unique_ptr<Model> make_registered_model(const RegisteredSpec& spec, std::uint64_t seed,
                                             int rank, int world_size, Device& device) {
  const ModelFactory factory = find("model", registry().models, spec.kind);
  const KindOptions options(spec.options, "/model/options");
  return made(factory({options, seed, rank, world_size, device}), spec.kind);
}

std::unique_ptr<Dataset> make_registered_dataset(const RegisteredSpec& spec) {
  const DatasetFactory factory = find("data", registry().datasets, spec.kind);
  return made(factory(KindOptions(spec.options, "/data/options")), spec.kind);
}

std::vector<RegisteredKind> registered_models() {
  return list(registry().models);
}

std::vector<RegisteredKind> registered_datasets() {
  return list(registry().datasets);
}

std::size_t registered_kinds_count() {
  const std::scoped_lock lock(registry().mutex);
  return registry().models.size() + registry().datasets.size();
}

}  // namespace gradsync
