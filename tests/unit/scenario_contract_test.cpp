// What is shipped agrees with the loader: the scenarios, the schema, the reference, and the files
// that have to be refused.

#include <algorithm>
#include <any>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"
#include "gradsync/testbed/scenario/scenario_table.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"

using namespace gradsync;
using gradsync::test::contains;
using scenario_table::Field;
using scenario_table::Json;
using scenario_table::Object;
using scenario_table::Section;

namespace {

namespace fs = std::filesystem;

const fs::path kSource = gradsync::test::source_dir();
const fs::path kInvalid = fs::path(gradsync::test::test_data()) / "invalid";

std::string contents(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  REQUIRE(stream);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::set<std::string> json_files(const fs::path& folder) {
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.insert(entry.path().filename().string());
  }
  return files;
}

template <class Visit>
void for_each_section(const Section& section, const Visit& visit) {
  visit(section);
  for (const Section& child : section.sections) for_each_section(child, visit);
}

}  // namespace

TEST_CASE("scenario contract: the schema in the repository is the generated one") {
  INFO("regenerate: gradsync schema > scenarios/schema/scenario.schema.json");
  const bool equal = contents(kSource / "scenarios/schema/scenario.schema.json") ==
                     scenario_schema().dump(2) + "\n";
  CHECK(equal);
}

TEST_CASE("scenario contract: docs/scenarios.md is the generated one") {
  INFO("regenerate: gradsync schema --markdown > docs/scenarios.md");
  const bool equal = contents(kSource / "docs/scenarios.md") == scenario_reference_markdown();
  CHECK(equal);
}

TEST_CASE(
    "scenario contract: every shipped scenario loads, says what it shows and what to expect") {
  const std::set<std::string> files = json_files(kSource / "scenarios");
  REQUIRE_FALSE(files.empty());
  for (const std::string& file : files) {
    CAPTURE(file);
    const Scenario s = load_scenario(kSource / "scenarios" / file);
    CHECK_FALSE(s.description.empty());
    CHECK(s.expect.outcome.has_value());
    CHECK(parse_scenario(to_json(s).dump(), s.file, "") == s);
    // The backend is one word: nothing else has to change.
    for (const char* backend : {"gloo", "sim"}) {
      CHECK_NOTHROW(load_scenario(kSource / "scenarios" / file, {{"backend", backend, ""}}));
    }
  }
}

TEST_CASE("scenario contract: every invalid file is refused with its place, reason and hint") {
  const Json table = Json::parse(contents(kInvalid.string() + ".json"));
  const std::set<std::string> files = json_files(kInvalid);
  CHECK(files.size() >= 40);
  CHECK(files.size() == table.size());
  for (const std::string& file : files) {
    CAPTURE(file);
    REQUIRE(table.contains(file));
    const Json& row = table.at(file);
    const std::string path = kInvalid / file;
    try {
      load_scenario(path);
      FAIL_CHECK("accepted");
    } catch (const ConfigError& error) {
      const ConfigError::Details& d = error.details();
      CHECK(error.code() == ErrorCode::kInvalidConfig);
      CHECK(d.file == path + (row.contains("at") ? ":" + row.at("at").get<std::string>() : ""));
      CHECK(d.pointer == row.at("pointer").get<std::string>());
      CHECK_THAT(d.expected, contains(row.at("expected")));
      CHECK_THAT(d.found, contains(row.at("found")));
      CHECK_THAT(d.hint, contains(row.at("hint")));
      CHECK(d.hint.empty() == (row.at("hint") == ""));
    }
  }
}

TEST_CASE("scenario table: names are unique, texts are sentences, examples are read") {
  for_each_section(scenario_table::root(), [](const Section& section) {
    CAPTURE(section.name);
    CHECK(section.description.back() == '.');
    std::set<std::string> kinds;
    for (const auto& kind : section.kinds) CHECK(kinds.insert(kind.name).second);
    if (kinds.empty()) kinds.insert("");
    for (const Field& field : section.fields) {
      for (const std::string& kind : field.kinds) CHECK(kinds.count(kind) == 1);
    }
    for (const std::string& kind : kinds) {
      CAPTURE(kind);
      std::set<std::string> names;
      for (const Section& child : section.sections) CHECK(names.insert(child.name).second);
      for (const Field* field : scenario_table::fields_of(section, kind)) {
        CAPTURE(field->name);
        CHECK(names.insert(field->name).second);
        CHECK(field->description.back() == '.');
        if (field->required) continue;
        scenario_table::with_default_of(section, kind, [&](const Object& scratch) {
          for (const Json& example : field->examples) {
            CHECK_NOTHROW(field->read(example, "", scratch));
          }
        });
      }
    }
  });
}

TEST_CASE("scenario table: a section's first kind is that of a default scenario") {
  for_each_section(scenario_table::root(), [](const Section& section) {
    if (section.kinds.empty()) return;
    CAPTURE(section.name);
    section.with_default([&](const Object& object) {
      CHECK(scenario_table::kind_of(section, object) == section.kinds.front().name);
      for (const auto& kind : section.kinds) {
        kind.select(object);
        CHECK(scenario_table::kind_of(section, object) == kind.name);
      }
    });
  });
}

TEST_CASE("scenario table: a list's item has a type of its own, and a row for another is refused") {
  using scenario_table::fields_of;
  const auto section_named = [](const std::string& name) -> const Section& {
    const auto& sections = scenario_table::root().sections;
    return *std::find_if(sections.begin(), sections.end(),
                         [&](const Section& section) { return section.name == name; });
  };
  const Section& faults = section_named("faults");
  REQUIRE(faults.list.has_value());
  Scenario scenario;
  const Object first = faults.list->append(Object(&scenario));
  const FaultSpec& fault = first;
  CHECK(&fault == &scenario.faults.front());
  const Scenario& constant = scenario;
  const auto items = faults.list->items(Object(&constant));
  REQUIRE(items.size() == 1);
  const FaultSpec& read_back = items.front();
  CHECK(&read_back == &fault);
  const Field& ranks = *fields_of(faults, "skip").front();
  CHECK(ranks.name == "ranks");
  CHECK_THROWS_AS(ranks.write(Object(&scenario)), std::bad_any_cast);
  CHECK_THROWS_AS(section_named("train").fields.front().write(first), std::bad_any_cast);
}
