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

Json section_schema(const Section& section, const Registry& registry);

/// The keys of one shape of a section, and no others.
Json shape_schema(const Section& section, const std::string& kind, const Registry& registry) {
  Json properties = Json::object();
  if (section.name.empty()) {
    properties["$schema"] = {{"type", "string"},
                             {"description", "Path of this schema, for editors."}};
  }
  if (!kind.empty()) properties["kind"] = {{"const", kind}};
  Json required = Json::array();
  for (const Field& field : section.fields) {
    if (!scenario_table::applies(field, kind)) continue;
    properties[field.name] = field_schema(section, field, kind);
    if (field.required) required.push_back(field.name);
  }
  for (const Section& child : section.sections) {
    Json inner = section_schema(child, registry);
    properties[child.name] =
        child.is_list()
            ? Json{{"description", child.description}, {"type", "array"}, {"items", inner}}
            : std::move(inner);
  }

  Json schema{{"properties", std::move(properties)},
              // Keys that start with two slashes are comments.
              {"patternProperties", {{"^//", Json::object()}}},
              {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

/// The keys of a kind that the program registered: those that have defaults, or any.
Json registered_schema(const RegisteredKind& kind) {
  Json properties{{"kind", {{"const", kind.name}}}};
  const std::string& defaults = kind.description.defaults;
  if (defaults.empty()) return {{"properties", std::move(properties)}};
  for (const auto& [name, value] : Json::parse(defaults).items()) {
    properties[name] = {{"default", value}};
    if (!value.is_null()) {
      properties[name]["type"] = value.is_number_integer() ? "integer" : value.type_name();
    }
  }
  return {{"properties", std::move(properties)},
          {"patternProperties", {{"^//", Json::object()}}},
          {"additionalProperties", false}};
}

Json section_schema(const Section& section, const Registry& registry) {
  Json schema{{"description", section.description}, {"type", "object"}};
  if (section.accepts_file) {
    schema["type"] = Json::array({"object", "string"});
    schema["minLength"] = 1;
  }
  if (section.kinds.empty()) {
    schema.update(shape_schema(section, "", registry));
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
    shapes.push_back(
        {{"if", std::move(condition)}, {"then", shape_schema(section, kind.name, registry)}});
  }
  if (section.open_kinds) {
    for (const auto& kind : section.open_kinds->kinds(registry)) {
      names.push_back(kind->name);
      description += " " + kind->name + ": " + kind->description.summary;
      shapes.push_back(
          {{"if", {{"properties", {{"kind", {{"const", kind->name}}}}}, {"required", {"kind"}}}},
           {"then", registered_schema(*kind)}});
    }
  }
  schema["properties"]["kind"] = {{"description", description},
                                  {"type", "string"},
                                  {"enum", names},
                                  {"default", names.front()}};
  schema["allOf"] = std::move(shapes);
  return schema;
}

}  // namespace

nlohmann::ordered_json scenario_schema(const Registry& registry) {
  Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"},
              {"title", "gradsync scenario"}};
  schema.update(section_schema(scenario_table::root(), registry));
  return schema;
}

}  // namespace gradsync
