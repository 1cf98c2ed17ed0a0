#include "gradsync/testbed/scenario/scenario.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "gradsync/core/error.hpp"
#include "gradsync/testbed/scenario/scenario_document.hpp"
#include "gradsync/testbed/scenario/scenario_reader.hpp"
#include "gradsync/testbed/scenario/scenario_table.hpp"

namespace gradsync {
namespace {

using scenario_table::Json;
using scenario_table::Object;
using scenario_table::Section;

Json write_section(const Section& section, const Object& object) {
  Json json = Json::object();
  const std::string kind = scenario_table::kind_of(section, object);
  if (!kind.empty()) json["kind"] = kind;
  for (const scenario_table::Field* field : scenario_table::fields_of(section, kind)) {
    Json value = field->write(object);
    // null is written only if it disables something that is on by default.
    if (value.is_null() && scenario_table::default_of(section, *field, kind).is_null()) continue;
    json[field->name] = std::move(value);
  }
  for (const Section& child : section.sections) {
    if (child.list) {
      Json list = Json::array();
      for (const Object& item : child.list->items(object)) {
        list.push_back(write_section(child, item));
      }
      json[child.name] = std::move(list);
      continue;
    }
    Json inner = write_section(child, object);
    if (!inner.empty()) json[child.name] = std::move(inner);
  }
  return json;
}

}  // namespace

Scenario load_scenario(const std::string& file, const std::vector<ScenarioOverride>& overrides) {
  namespace fs = std::filesystem;
  const auto refuse = [&](const std::string& found) {
    throw ConfigError({file, "", "a scenario file", found, ""});
  };
  std::error_code error;
  if (fs::is_directory(file, error)) refuse("a folder");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse(fs::exists(file, error) ? "a file that cannot be read" : "no such file");
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  return parse_scenario(text, file, fs::path(file).parent_path().string(), overrides);
}

Scenario parse_scenario(const std::string& text, const std::string& name,
                        const std::string& base_dir,
                        const std::vector<ScenarioOverride>& overrides) {
  const scenario_table::ScenarioDocument document(text, name, base_dir, overrides);
  Scenario scenario = scenario_table::read_scenario(document, base_dir);
  scenario_table::check_scenario(document, scenario);
  return scenario;
}

nlohmann::ordered_json to_json(const Scenario& scenario) {
  return write_section(scenario_table::root(), Object(&scenario));
}

}  // namespace gradsync
