// The JSON Schema of the scenario file: a walk over the table.

#include "gradsync/testbed/scenario/scenario.hpp"
#include "gradsync/testbed/scenario/scenario_table.hpp"

namespace gradsync {
namespace {

using scenario_table::Field;
using scenario_table::Json;
using scenario_table::Kind;
using scenario_table::Section;

Json field_schema(const Section& section, const Field& field, const std::string& kind) {
  Json schema{{"description", field.description}};
  schema.update(field.schema);
  if (!field.default_text.empty()) {
    schema["description"] = field.description + " Default: " + field.default_text + ".";
  } else if (Json value = scenario_table::default_of(section, field, kind); !value.is_null()) {
    schema["default"] = std::move(value);
  }
  if (!field.examples.empty()) schema["examples"] = field.examples;
  return schema;
}

Json section_schema(const Section& section);

/// The keys of one shape of a section; other keys are not allowed.
Json shape_schema(const Section& section, const std::string& kind) {
  Json properties = Json::object();
  if (section.name.empty()) {
    properties["$schema"] = {{"type", "string"},
                             {"description", "Path of this schema, for editors."}};
  }
  if (!kind.empty()) properties["kind"] = {{"const", kind}};
  Json required = Json::array();
  for (const Field* field : scenario_table::fields_of(section, kind)) {
    properties[field->name] = field_schema(section, *field, kind);
    if (field->required) required.push_back(field->name);
  }
  for (const Section& child : section.sections) {
    Json inner = section_schema(child);
    properties[child.name] =
        child.list ? Json{{"description", child.description}, {"type", "array"}, {"items", inner}}
                   : std::move(inner);
  }

  Json schema{{"properties", std::move(properties)},
              // Keys that start with two slashes are comments.
              {"patternProperties", {{"^//", Json::object()}}},
              {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

Json section_schema(const Section& section) {
  Json schema{{"description", section.description}, {"type", "object"}};
  if (section.accepts_file) {
    schema["type"] = Json::array({"object", "string"});
    schema["minLength"] = 1;
  }
  if (section.kinds.empty()) {
    schema.update(shape_schema(section, ""));
    return schema;
  }
  std::string description;
  Json names = Json::array();
  Json shapes = Json::array();
  for (const Kind& kind : section.kinds) {
    const bool is_default = names.empty();
    names.push_back(kind.name);
    description += (is_default ? "" : " ") + kind.name + ": " + kind.description;
    Json condition{{"properties", {{"kind", {{"const", kind.name}}}}}};
    if (!is_default) condition["required"] = {"kind"};
    shapes.push_back({{"if", std::move(condition)}, {"then", shape_schema(section, kind.name)}});
  }
  schema["properties"]["kind"] = {{"description", description},
                                  {"type", "string"},
                                  {"enum", names},
                                  {"default", names.front()}};
  schema["allOf"] = std::move(shapes);
  return schema;
}

}  // namespace

nlohmann::ordered_json scenario_schema() {
  Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"},
              {"title", "gradsync scenario"}};
  schema.update(section_schema(scenario_table::root()));
  return schema;
}

}  // namespace gradsync
