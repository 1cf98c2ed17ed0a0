#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gradsync {

class Dataset;
class Device;
class Model;

/// The options that a scenario gives to a kind which the program registered: the keys of its
/// section beside "kind".
class KindOptions {
 public:
  /// `json`: an object. `place`: JSON pointer of the section, for errors.
  KindOptions(std::string json, std::string place)
      : json_(std::move(json)), place_(std::move(place)) {}

  /// Each throws ConfigError for an option that is not there or of another type.
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  bool flag(std::string_view name) const;
  std::string text(std::string_view name) const;
  /// All of them, as the text of a JSON object.
  const std::string& json() const noexcept { return json_; }

 private:
  std::string json_;
  std::string place_;
};

/// What a registered model is made from, once a rank.
struct ModelRequest {
  const KindOptions& options;
  std::uint64_t seed;  ///< the scenario's: of the initial weights
  int rank;
  int world_size;
  Device& device;  ///< where its parameters and tensors live
};
using ModelFactory = std::function<std::unique_ptr<Model>(const ModelRequest&)>;
/// Called once a process; the data set is shared by its ranks.
using DatasetFactory = std::function<std::unique_ptr<Dataset>(const KindOptions&)>;

/// How a kind presents itself to people who write scenarios.
struct KindDescription {
  std::string summary = {};
  /// A JSON object: the options that there are, each with its default. A scenario may set these and
  /// no others, to values of the same JSON type (null: of any). Empty: any options are passed on.
  std::string defaults = {};
};

struct RegisteredKind {
  std::string name;
  KindDescription description;
};
struct RegisteredModel : RegisteredKind {
  ModelFactory make;
};
struct RegisteredDataset : RegisteredKind {
  DatasetFactory make;
};

/// The models and data sets that a program brings along, by the names by which its scenarios call
/// them ("model": {"kind": NAME, ...}). Filled before the first scenario is read, by one thread;
/// may then be read by any. A scenario shares the kinds that it uses: it may outlive the registry.
///
/// Ranks of real backends are processes of the same program, so each has the same registry.
class Registry {
 public:
  /// Throw Error(kMisuse) for a name that is empty or taken, or defaults that are no JSON object.
  void register_model(const std::string& kind, ModelFactory make,
                      const KindDescription& description = {});
  void register_dataset(const std::string& kind, DatasetFactory make,
                        const KindDescription& description = {});

  /// By name; null where there is none.
  std::shared_ptr<const RegisteredModel> find_model(const std::string& kind) const;
  std::shared_ptr<const RegisteredDataset> find_dataset(const std::string& kind) const;
  /// In the order of their names.
  std::vector<std::shared_ptr<const RegisteredKind>> models() const;
  std::vector<std::shared_ptr<const RegisteredKind>> datasets() const;

 private:
  std::map<std::string, std::shared_ptr<const RegisteredModel>> models_;
  std::map<std::string, std::shared_ptr<const RegisteredDataset>> datasets_;
};

/// A registered kind and the options that a scenario gives to it.
template <class Kind>
struct RegisteredSpec {
  std::shared_ptr<const Kind> kind;
  std::string options;  ///< the text of a JSON object, with every default filled in
  bool operator==(const RegisteredSpec&) const = default;
};

}  // namespace gradsync
