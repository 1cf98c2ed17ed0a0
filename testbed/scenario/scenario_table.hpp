#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/testbed/scenario/scenario.hpp"

/// The table of everything that a scenario file can say. The reader, the writer, the JSON Schema
/// and docs/scenarios.md are four walks over it; none of them knows a field by name.
namespace gradsync::scenario_table {

using Json = nlohmann::ordered_json;

/// Thrown by a field's reader: what is wrong with its value.
struct Mistake {
  std::string expected;
  std::string hint = {};
  std::string pointer = {};  ///< to the culprit inside the value, e.g. "/2" in a list
};

/// A key with a value: one row of the table.
struct Field {
  std::string name;
  std::string description;
  std::string type;  ///< for people: "a whole number >= 1"
  Json schema;       ///< draft-07: type, bounds, pattern, enum; without texts and default

  std::vector<std::string> kinds;        ///< of the section, that have this field; empty: all
  std::vector<Json> examples;            ///< for the schema
  std::string default_text;              ///< where the default depends on something else
  std::vector<std::string> other_names;  ///< what people write for it, for "did you mean"
  bool required = false;

  /// Reads the value into the scenario; throws Mistake. Paths are relative to `base_dir`.
  std::function<void(const Json& value, const std::string& base_dir, Scenario& scenario)> read;
  /// The value in the scenario; null where an optional one is unset.
  std::function<Json(const Scenario& scenario)> write;
};

/// One of several shapes of a section, chosen by its key "kind".
struct Kind {
  std::string name;
  std::string description;
  std::function<void(Scenario&)> select;  ///< sets the kind and the defaults that go with it
  std::function<bool(const Scenario&)> selected;  ///< whether the scenario has this kind
};

/// A section to which a program may add kinds: how the registry and the scenario hold those.
struct OpenKinds {
  using Spec = RegisteredSpec<RegisteredKind>;
  std::vector<std::shared_ptr<const RegisteredKind>> (*kinds)(const Registry&);
  /// The one that the scenario has; nothing where it has a kind of the table.
  std::optional<Spec> (*selected)(const Scenario&);
  void (*select)(const Registry&, const std::string& name, std::string options, Scenario&);
};

/// An object of the file.
struct Section {
  std::string name;  ///< its key; empty for the file itself
  std::string description;
  std::vector<Kind> kinds = {};  ///< the first is the default; empty: the section has one shape
  std::optional<OpenKinds> open_kinds = {};
  std::vector<Field> fields = {};
  std::vector<Section> sections = {};
  bool accepts_file = false;  ///< the path of a JSON file that holds the object may stand for it
  /// Set where the key holds a list of such objects: adds one to the scenario, of which the other
  /// functions of the section then see the last.
  std::function<void(Scenario&)> append_item = {};
  /// Scenarios with one item each, in order.
  std::function<std::vector<Scenario>(const Scenario&)> items = {};
  bool is_list() const { return append_item != nullptr; }
};

/// The whole file.
const Section& root();

// Parts of it, one function a source file or section.
Section model_section();
Section data_section();
Section sampler_section();
Section optimizer_section();
Section train_section();
Section ddp_section();
Section cluster_section();
Section communication_section();
Section simulation_section();
Section gloo_section();
Section nccl_section();
Section output_section();
Section expect_section();
Section faults_section();
Section imperfections_section();

/// Whether a section of this kind has the field.
bool applies(const Field& field, const std::string& kind);
/// The kind that the scenario has in a section; "" where the section has one shape.
std::string kind_of(const Section& section, const Scenario& scenario);
/// What the field is where the file says nothing; null: unset or required.
Json default_of(const Section& section, const Field& field, const std::string& kind);

}  // namespace gradsync::scenario_table
