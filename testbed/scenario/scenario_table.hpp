#pragma once

#include <any>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/testbed/scenario/scenario.hpp"

/// The table of everything that a scenario file can say. The reader, the writer, the JSON Schema
/// and docs/scenarios.md are four walks over it; none of them knows a field by name.
namespace gradsync::scenario_table {

using Json = nlohmann::ordered_json;

/// What the rows of a section read into and write from: a pointer to the scenario, or to the item
/// of a list that has sections of its own, whose type its rows know. T* to read into, T* or const
/// T* to write from.
using Object = std::any;

template <class T>
T& object_as(const Object& object) {
  return *std::any_cast<T*>(object);
}
template <class T>
const T& const_object_as(const Object& object) {
  if (T* const* pointer = std::any_cast<T*>(&object)) return **pointer;
  return *std::any_cast<const T*>(object);
}

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

  /// Reads the value into the object; throws Mistake. Paths are relative to `base_dir`.
  std::function<void(const Json& value, const std::string& base_dir, const Object& object)> read;
  /// The value in the object; null where an optional one is unset.
  std::function<Json(const Object& object)> write;
};

/// One of several shapes of a section, chosen by its key "kind".
struct Kind {
  std::string name;
  std::string description;
  std::function<void(const Object&)> select;    ///< sets the kind, and the defaults that go with it
  std::function<bool(const Object&)> selected;  ///< whether the object is of this kind
};

/// The items of a key that holds a list of objects.
struct List {
  std::function<Object(const Object& scenario)> append;              ///< a new item, to read into
  std::function<std::vector<Object>(const Object& scenario)> items;  ///< in order
  /// Returns what `use` returns for an item that is default-constructed.
  std::function<Json(const std::function<Json(const Object& item)>& use)> with_default;
};

/// An object of the file.
struct Section {
  std::string name;  ///< its key; empty for the file itself
  std::string description;
  std::vector<Kind> kinds = {};  ///< the first is the default; empty: the section has one shape
  std::vector<Field> fields = {};
  std::vector<Section> sections = {};
  bool accepts_file = false;  ///< the path of a JSON file that holds the object may stand for it
  /// Set where the key holds a list of such objects. The section's functions see an item then, else
  /// the scenario.
  std::optional<List> list = {};
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
/// The kind of the object in a section; "" where the section has one shape.
std::string kind_of(const Section& section, const Object& object);
/// What the field is where the file says nothing; null: unset or required.
Json default_of(const Section& section, const Field& field, const std::string& kind);

}  // namespace gradsync::scenario_table
