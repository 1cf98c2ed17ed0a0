#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gradsync {

class Dataset;
class Device;
class Model;

/// Models and data sets of the program, by the names that its scenarios use:
///
///     "model": {"kind": "mlp", "options": {"hidden": 8}}
///
/// A registered kind is known to the whole process, and nothing unregisters it. Register before the
/// first scenario is loaded, in `main`: each rank of a real backend is a process that runs the same
/// program, so that `main` registers the kinds there too. All functions here are thread-safe.

/// The values of "options" in a scenario, with the defaults of the kind filled in.
class KindOptions {
 public:
  /// `json` is the text of a JSON object; `pointer` its JSON pointer in the scenario, for errors.
  KindOptions(std::string json, std::string pointer)
      : json_(std::move(json)), pointer_(std::move(pointer)) {}

  /// Each throws ConfigError if the option is missing or has another type.
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  bool flag(std::string_view name) const;
  std::string text(std::string_view name) const;

  /// All options, as the text of a JSON object. Paths in it are as written in the scenario.
  const std::string& json() const noexcept { return json_; }

 private:
  std::string json_;
  std::string pointer_;
};

/// What a model is made from.
struct ModelRequest {
  const KindOptions& options;
  std::uint64_t seed;  ///< of the initial weights (the scenario's `seed`); equal on all ranks
  int rank;
  int world_size;
  Device& device;  ///< for parameters and tensors; outlives the model
};

/// Called once per rank. In the simulator all ranks are in one process, so a factory must not keep
/// anything that one rank changes.
using ModelFactory = std::function<std::unique_ptr<Model>(const ModelRequest&)>;
/// Called once per process, whose ranks share the data set.
using DatasetFactory = std::function<std::unique_ptr<Dataset>(const KindOptions&)>;

struct KindDescription {
  std::string summary;  ///< a sentence for the schema and the reference
  /// The text of a JSON object with every option and its default. A scenario can then set only
  /// these options, to values of the same JSON type (null: of any type). Empty: the scenario can
  /// set any option, and the factory has to check them.
  std::string options = {};
};

/// Makes `kind` a kind of "model" or "data" in scenarios. Throws Error(kMisuse) if the name is
/// empty or taken, the factory is empty, or `description.options` is not a JSON object.
void register_model(const std::string& kind, ModelFactory factory, KindDescription description);
void register_dataset(const std::string& kind, DatasetFactory factory, KindDescription description);

/// A registered kind and the options that a scenario gives to it.
struct RegisteredSpec {
  std::string kind;
  std::string options = "{}";  ///< the text of a JSON object
  bool operator==(const RegisteredSpec&) const = default;
};

/// Call the factory of the kind. Throw Error(kMisuse) if the kind is unknown or its factory returns
/// null.
std::unique_ptr<Model> make_registered_model(const RegisteredSpec& spec, std::uint64_t seed,
                                             int rank, int world_size, Device& device);
std::unique_ptr<Dataset> make_registered_dataset(const RegisteredSpec& spec);

struct RegisteredKind {
  std::string name;
  KindDescription description;
};

/// In the order of their names.
std::vector<RegisteredKind> registered_models();
std::vector<RegisteredKind> registered_datasets();
/// Number of registered kinds; it never decreases.
std::size_t registered_kinds_count();

}  // namespace gradsync
