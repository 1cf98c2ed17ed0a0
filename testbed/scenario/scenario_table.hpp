#pragma once

#include <any>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/testbed/scenario/scenario.hpp"

/// The table of everything a scenario file can contain. The reader, the writer, the JSON Schema and
/// docs/scenarios.md are four walks over it; none of them knows a field by name.
namespace gradsync::scenario_table {

using Json = nlohmann::ordered_json;

/// Thrown by a field's reader: what is wrong with the value.
struct Mistake {
  std::string expected;
  std::string hint = {};
  std::string pointer = {};  ///< pointer within the value, e.g. "/2" in a list
};

/// A type-erased reference to the C++ object of a section: the scenario, or an item of one of its
/// lists. Converts only to a reference of its own type; a row in a section of another type gets a
/// std::bad_any_cast.
class Object {
 public:
  template <class T>
  explicit Object(T* object) : pointer_(object) {}

  template <class T>
  operator T&() const {
    if constexpr (std::is_const_v<T>) {
      if (const auto* pointer = std::any_cast<std::remove_const_t<T>*>(&pointer_)) return **pointer;
    }
    return *std::any_cast<T*>(pointer_);
  }

 private:
  std::any pointer_;
};

/// A key with a value: one row of the table.
struct Field {
  std::string name;
  std::string description;
  std::string type;  ///< in words: "a whole number >= 1"
  Json schema;       ///< draft-07: type, bounds, pattern, enum; without description and default

  std::vector<std::string> kinds;        ///< of the section, that have this field; empty: all
  std::vector<Json> examples;            ///< for the schema
  std::string default_text;              ///< if the default depends on something else
  std::vector<std::string> other_names;  ///< common wrong names, for "did you mean"
  bool required = false;

  /// Reads the value into the section's object; throws Mistake. Paths are relative to `base_dir`.
  std::function<void(const Json& value, const std::string& base_dir, const Object& object)> read;
  /// The value in the section's object; null if optional and unset.
  std::function<Json(const Object& object)> write;
};

/// One of several shapes of a section, selected by its key "kind".
struct Kind {
  std::string name;
  std::string description;
  std::function<void(const Object&)> select;    ///< sets the kind and its defaults
  std::function<bool(const Object&)> selected;  ///< whether the object is of this kind
  std::vector<Field> fields = {};               ///< specific to this kind
};

/// Calls `use` with a new T.
template <class T>
void with_new(const std::function<void(const Object&)>& use) {
  T object;
  use(Object(&object));
}

/// An object of the file.
struct Section {
  std::string name;  ///< its key; empty for the file itself
  std::string description;
  std::vector<Kind> kinds = {};  ///< the first is the default; empty: a single shape
  std::vector<Field> fields = {};
  std::vector<Section> sections = {};
  bool has_registered_kinds = false;  ///< a program can register further kinds
  bool accepts_file = false;  ///< may be replaced by the path of a JSON file with the object
  /// Set if the key holds a list of such objects, which have their own type.
  struct List {
    /// Appends an item; `parent` is the object of the enclosing section.
    std::function<Object(const Object& parent)> append;
    std::function<std::vector<Object>(const Object& parent)> items;
  };
  std::optional<List> list = {};
  /// Calls a function with an object of this section with all defaults.
  void (*with_default)(const std::function<void(const Object&)>& use) = with_new<Scenario>;
};

/// The whole file, with the kinds that are registered at the time of the call. Thread-safe; the
/// reference stays valid.
const Section& root();

// Its parts, one function per source file or section.
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

/// The kinds of "model" and "data", followed by those that the program registered.
std::vector<Kind> with_registered_models(std::vector<Kind> kinds);
std::vector<Kind> with_registered_datasets(std::vector<Kind> kinds);

/// The fields of a section of this kind, in order.
std::vector<const Field*> fields_of(const Section& section, const std::string& kind);
/// The kinds of a section with a field of this name.
std::vector<std::string> kinds_with(const Section& section, const std::string& field);
/// The kind of the object; "" if the section has a single shape.
std::string kind_of(const Section& section, const Object& object);
/// Calls `use` with an object of this kind with all defaults.
void with_default_of(const Section& section, const std::string& kind,
                     const std::function<void(const Object&)>& use);
/// The field's value if the file does not set it; null: unset or required.
Json default_of(const Section& section, const Field& field, const std::string& kind);

}  // namespace gradsync::scenario_table
