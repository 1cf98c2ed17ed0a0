// A default stands once: a walk over the table that the reader, the schema and docs/scenarios.md
// are made from, against option structs that are default-constructed.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/testbed/scenario/scenario_document.hpp"
#include "gradsync/testbed/scenario/scenario_reader.hpp"
#include "gradsync/testbed/scenario/scenario_table.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"

namespace gradsync::scenario_table {
namespace {

/// Calls `see` for every section of the file, with its path: "ddp", "ddp.join", "faults".
void walk(const Section& section, const std::string& path,
          const std::function<void(const Section&, const std::string&)>& see) {
  see(section, path);
  for (const Section& child : section.sections) {
    walk(child, path.empty() ? child.name : path + "." + child.name, see);
  }
}

/// The kinds of a section, or "" where it has one shape.
std::vector<std::string> kinds_of(const Section& section) {
  std::vector<std::string> kinds;
  for (const Kind& kind : section.kinds) kinds.push_back(kind.name);
  return kinds.empty() ? std::vector<std::string>{""} : kinds;
}

/// The smallest document that has the section, with nothing said that need not be.
Json document_with(const Section& section, const std::string& path, const std::string& kind) {
  Json object = Json::object();
  if (!kind.empty()) object["kind"] = kind;
  for (const Field* field : fields_of(section, kind)) {
    if (!field->required) continue;
    const bool is_list = field->schema.at("type") == "array";
    object[field->name] = is_list ? Json::array({"x"}) : Json("scenarios/README.md");
  }
  if (section.list) object = Json::array({object});
  if (path.empty()) return object;
  Json document;
  std::string pointer = "/" + path;
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  document[Json::json_pointer(pointer)] = object;
  return document;
}

/// The section of the scenario that the reader makes of it, as it is written.
Json read_back(const Section& section, const std::string& path, const std::string& kind) {
  const ScenarioDocument document(document_with(section, path, kind).dump(), "defaults",
                                  test::source_dir(), {});
  Json json = to_json(read_scenario(document, test::source_dir()));
  if (path.empty()) return json;
  std::string pointer = "/" + path;
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  Json object = json.value(Json::json_pointer(pointer), Json::object());
  return section.list ? object.at(0) : object;
}

/// The schema of a section's key in this shape.
const Json& schema_of(const Json& root, const Section& section, const std::string& path,
                      const std::string& kind, const std::string& key) {
  const Json* schema = &root;
  for (std::size_t begin = 0; !path.empty() && begin != std::string::npos;) {
    const std::size_t dot = path.find('.', begin);
    const Json& properties =
        schema->contains("properties") && schema->at("properties").contains("kind")
            ? schema->at("allOf").at(0).at("then").at("properties")
            : schema->at("properties");
    schema = &properties.at(path.substr(begin, dot - begin));
    begin = dot == std::string::npos ? dot : dot + 1;
  }
  if (section.list) schema = &schema->at("items");
  if (kind.empty()) return schema->at("properties").at(key);
  for (const Json& shape : schema->at("allOf")) {
    const Json& properties = shape.at("then").at("properties");
    if (properties.at("kind").at("const") == kind) return properties.at(key);
  }
  FAIL("no kind " << kind << " in the schema of " << path);
  return *schema;
}

/// The row of docs/scenarios.md for a key: "| `key` | value | default | meaning |".
std::string documented_default(const std::string& reference, const Section& section,
                               const std::string& path, const std::string& kind,
                               const std::string& key) {
  std::size_t at =
      path.empty() ? reference.find("## The file") : reference.find("# `" + path + "`\n");
  REQUIRE(at != std::string::npos);
  if (!section.kinds.empty()) at = reference.find("`\"kind\": \"" + kind + "\"`", at);
  at = reference.find("\n| `" + key + "` | ", at);
  REQUIRE(at != std::string::npos);
  std::vector<std::string> cells;
  std::string cell;
  for (std::size_t i = at + 1; reference[i] != '\n'; ++i) {
    if (reference[i] == '|' && reference[i - 1] != '\\') {
      cells.push_back(cell);
      cell.clear();
    } else {
      cell += reference[i];
    }
  }
  const std::string& text = cells.at(3);  // behind the first bar, key and value
  return text.substr(1, text.size() > 1 ? text.size() - 2 : 0);
}

}  // namespace

TEST_CASE("scenario: the default that schema and reference print is the one that a run has") {
  const Json schema = scenario_schema();
  const std::string reference = scenario_reference_markdown();
  int rows = 0;
  walk(root(), "", [&](const Section& section, const std::string& path) {
    for (const std::string& kind : kinds_of(section)) {
      const Json written = read_back(section, path, kind);
      for (const Field* row : fields_of(section, kind)) {
        const Field& field = *row;
        if (field.required || !field.default_text.empty()) continue;
        if (path == "cluster" && field.name == "nodes") continue;  // as many as the ranks need
        CAPTURE(path, kind, field.name);
        const Json value = written.value(field.name, Json());
        CHECK(schema_of(schema, section, path, kind, field.name).value("default", Json()) == value);
        const std::string text = documented_default(reference, section, path, kind, field.name);
        CHECK(text == (value.is_null() || value == "" ? "" : "`" + value.dump() + "`"));
        ++rows;
      }
    }
  });
  CHECK(rows > 200);
}

TEST_CASE("scenario: its defaults are those of the engine's options, but for two") {
  // What the engine's options are where nobody sets them, in place of the scenario's own.
  Scenario engine;
  static_cast<SamplerOptions&>(engine.sampler) = {};
  static_cast<DdpOptions&>(engine.ddp) = {};
  static_cast<ReplayOptions&>(engine.model.replay) = {};
  engine.model.transformer = {};
  engine.ddp.power_sgd = {};
  engine.ddp.join = {};
  engine.optimizer.lr_schedule = {};
  std::map<std::string, std::pair<Json, Json>> different;
  walk(root(), "", [&](const Section& section, const std::string& path) {
    if (section.list) return;
    for (const std::string& kind : kinds_of(section)) {
      for (const Kind& candidate : section.kinds) {
        if (candidate.name == kind) candidate.select(Object(&engine));
      }
      for (const Field* field : fields_of(section, kind)) {
        if (field->required) continue;
        const Json ours = default_of(section, *field, kind);
        const Json engines = field->write(Object(&engine));
        if (ours != engines) different[path + "." + field->name] = {ours, engines};
      }
    }
  });
  // A job without a seed of its own is the handbook's; Join is something that a loop opts in to.
  CHECK(different == std::map<std::string, std::pair<Json, Json>>{
                         {"sampler.seed", {42, 0}}, {"ddp.join.enable", {false, true}}});
}

TEST_CASE("scenario: an item of a list is read into an object of its own") {
  const Scenario s = parse_scenario(
      R"({"backend": "sim", "cluster": {"gpus_per_node": 1},
          "optimizer": {"param_groups": [{"params": ["a"], "lr": 0.5}, {"params": ["b"]}]},
          "faults": [{"kind": "delay", "duration": "1s"}, {"kind": "skip"}],
          "imperfections": {"links": [{"node": 0, "factor": 0.5}, {"node": 1}],
                            "slow_ranks": [{"ranks": [1], "factor": 2}, {}]}})",
      "items", ".");
  REQUIRE(s.optimizer.param_groups.size() == 2);
  CHECK(s.optimizer.param_groups[0].lr == 0.5);
  CHECK_FALSE(s.optimizer.param_groups[1].lr.has_value());
  REQUIRE(s.imperfections.links.size() == 2);
  CHECK(s.imperfections.links[0].factor == 0.5);
  CHECK(s.imperfections.links[1].factor == 1);
  CHECK(s.imperfections.slow_ranks[1].ranks.empty());
  CHECK(to_json(s).at("faults").size() == 2);
  CHECK(parse_scenario(to_json(s).dump(), "again", ".").imperfections == s.imperfections);
}

}  // namespace gradsync::scenario_table
