#include "gradsync/testbed/scenario/scenario_reader.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "gradsync/testbed/scenario/scenario_hints.hpp"
#include "gradsync/testbed/scenario/scenario_table.hpp"

namespace gradsync::scenario_table {
namespace {

bool is_comment(const std::string& key) {
  return key.rfind("//", 0) == 0;
}

std::string quoted(const std::string& text) {
  return "\"" + text + "\"";
}

class Reader {
 public:
  Reader(const ScenarioDocument& document, std::string base_dir)
      : document_(document), base_dir_(std::move(base_dir)) {}

  Scenario read() {
    Scenario scenario;
    read_section(root(), document_.json(), "", Object(&scenario));
    return scenario;
  }

 private:
  void read_section(const Section& section, const Json& json, const std::string& pointer,
                    const Object& object) {
    if (!json.is_object()) {
      document_.fail(pointer, fmt::format("an object with the keys of {}", quoted(section.name)));
    }
    const std::string kind = select_kind(section, json, pointer, object);
    for (const auto& [key, value] : json.items()) {
      if (is_comment(key) || (key == "kind" && !section.kinds.empty())) continue;
      if (key == "$schema" && pointer.empty()) continue;
      read_key(section, kind, key, value, pointer + pointer_token(key), object);
    }
    for (const Field* field : fields_of(section, kind)) {
      if (field->required && !json.contains(field->name)) {
        document_.fail(pointer + pointer_token(field->name), field->type,
                       fmt::format("{} of kind {} needs it", quoted(section.name), quoted(kind)));
      }
    }
  }

  void read_list(const Section& section, const Json& list, const std::string& pointer,
                 const Object& parent) {
    if (!list.is_array()) {
      document_.fail(pointer, fmt::format("a list of {}", section.name),
                     list.is_object() ? "put it in brackets" : "");
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      read_section(section, list[i], fmt::format("{}/{}", pointer, i),
                   section.list->append(parent));
    }
  }

  /// Reads the kind first, wherever it is in the object, because it determines the other keys.
  std::string select_kind(const Section& section, const Json& json, const std::string& pointer,
                          const Object& object) {
    if (section.kinds.empty()) return "";
    const auto found = json.find("kind");
    std::vector<std::string> texts;
    for (const Kind& kind : section.kinds) {
      if (found == json.end() || *found == kind.name) {
        kind.select(object);
        return kind.name;
      }
      texts.push_back(quoted(kind.name));
    }
    document_.fail(pointer + "/kind", enumerate(texts, "or"), unknown_kind_hint(section, *found));
  }

  std::string unknown_kind_hint(const Section& section, const Json& kind) const {
    if (!kind.is_string()) return "";
    std::vector<std::string> names;
    for (const Kind& known : section.kinds) names.push_back(known.name);
    const std::string similar = did_you_mean(kind.get<std::string>(), names);
    if (!similar.empty() || !section.has_registered_kinds) return similar;
    return "a kind that a program registers is known only to that program's own command";
  }

  void read_key(const Section& section, const std::string& kind, const std::string& key,
                const Json& value, const std::string& pointer, const Object& object) {
    for (const Section& child : section.sections) {
      if (child.name != key) continue;
      return child.list ? read_list(child, value, pointer, object)
                        : read_section(child, value, pointer, object);
    }
    for (const Field* field : fields_of(section, kind)) {
      if (field->name == key) return read_field(section, kind, *field, value, pointer, object);
    }
    document_.fail(pointer,
                   section.name.empty() ? "a key of the scenario"
                                        : fmt::format("a key of {}", quoted(section.name)),
                   unknown_key_hint(section, kind, key, pointer));
  }

  void read_field(const Section& section, const std::string& kind, const Field& field,
                  const Json& value, const std::string& pointer, const Object& object) {
    try {
      field.read(value, base_dir_, object);
    } catch (const Mistake& mistake) {
      const std::string hint =
          mistake.hint.empty() ? quotes_hint(section, kind, field, value) : mistake.hint;
      document_.fail(pointer + mistake.pointer, mistake.expected, hint);
    }
  }

  /// A hint if "32" was written for 32, or "true" for true.
  std::string quotes_hint(const Section& section, const std::string& kind, const Field& field,
                          const Json& value) const {
    if (!value.is_string()) return "";
    const Json inner = Json::parse(value.get_ref<const std::string&>(), nullptr, false);
    if (inner.is_discarded()) return "";
    try {
      with_default_of(section, kind,
                      [&](const Object& scratch) { field.read(inner, base_dir_, scratch); });
    } catch (const Mistake&) {
      return "";
    }
    return "write " + inner.dump() + " without quotes";
  }

  std::string unknown_key_hint(const Section& section, const std::string& kind,
                               const std::string& key, const std::string& pointer) const {
    std::vector<std::string> names;
    for (const Field* field : fields_of(section, kind)) {
      names.push_back(field->name);
      if (field->schema.value("properties", Json::object()).contains(key)) {
        return fmt::format("it goes into {}", quoted(field->name));
      }
      if (is_other_name(*field, key)) {
        return fmt::format("it is called {} here", quoted(field->name));
      }
    }
    std::vector<std::string> kinds;
    for (const std::string& name : kinds_with(section, key)) kinds.push_back(quoted(name));
    if (!kinds.empty()) {
      const std::string parent = pointer.substr(0, pointer.rfind('/'));
      return fmt::format("it goes with kind {}, and {}", enumerate(kinds, "or"),
                         document_.mention(parent + "/kind", kind));
    }
    for (const Section& child : section.sections) names.push_back(child.name);
    if (!section.kinds.empty()) names.push_back("kind");

    std::vector<std::string> elsewhere;
    find_elsewhere(root(), "", key, elsewhere);
    if (!elsewhere.empty()) return "it stands in " + enumerate(elsewhere, "or");
    const std::string similar = did_you_mean(key, names);
    if (!similar.empty()) return similar;
    return "the keys here are " + enumerate(names, "and");
  }

  static bool is_other_name(const Field& field, const std::string& key) {
    return std::find(field.other_names.begin(), field.other_names.end(), key) !=
           field.other_names.end();
  }

  static void find_elsewhere(const Section& section, const std::string& pointer,
                             const std::string& key, std::vector<std::string>& found) {
    for (const Field& field : section.fields) {
      if (field.name == key || is_other_name(field, key))
        found.push_back(pointer + "/" + field.name);
    }
    for (const Section& child : section.sections) {
      if (child.list) continue;  // keys of list items have no fixed pointer
      if (child.name == key) found.push_back(pointer + "/" + child.name);
      find_elsewhere(child, pointer + "/" + child.name, key, found);
    }
  }

  const ScenarioDocument& document_;
  std::string base_dir_;
};

}  // namespace

Scenario read_scenario(const ScenarioDocument& document, const std::string& base_dir) {
  Scenario scenario = Reader(document, base_dir).read();
  scenario.file = document.file();
  if (scenario.name.empty()) {
    scenario.name = std::filesystem::path(document.file()).stem().string();
  }
  if (scenario.cluster.nodes == 0) {
    const std::int64_t per_node = scenario.cluster.gpus_per_node;
    scenario.cluster.nodes = (scenario.ranks + per_node - 1) / per_node;
  }
  return scenario;
}

}  // namespace gradsync::scenario_table
