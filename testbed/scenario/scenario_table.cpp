#include "gradsync/testbed/scenario/scenario_table.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "gradsync/testbed/scenario/backend_descriptor.hpp"
#include "gradsync/testbed/scenario/scenario_codec.hpp"

namespace gradsync::scenario_table {
namespace {

Section make_root() {
  return {
      .name = "",
      .description = "A training job, and the machines that it runs on.",
      .fields =
          {
              field("name", SCENARIO_MEMBER(name), any(),
                    "Name of the scenario in results and reports.",
                    {.default_text = "the file's name without its ending"}),
              field("description", SCENARIO_MEMBER(description), any(),
                    "What the scenario shows, in a sentence or two."),
              field("backend", SCENARIO_MEMBER(backend), one_of(backend_names()),
                    "What runs the job: `gloo` starts one process per rank on CPUs, `nccl` one "
                    "process per GPU, and `sim` predicts the run in simulated time."),
              field("ranks", SCENARIO_MEMBER(ranks), at_least(1),
                    "Number of ranks: the world size.",
                    {.examples = {2, 8, 1024},
                     .other_names = {"world_size", "nproc_per_node", "nprocs", "num_ranks"}}),
              field("seed", SCENARIO_MEMBER(seed), any(),
                    "Seed of the initial weights; the same on every rank."),
              field("timeout", SCENARIO_MEMBER(timeout), above(0),
                    "Longest wait for a collective, and for the rendezvous. In `sim` a hang ends "
                    "before the timeout, as soon as no rank can proceed.",
                    {.examples = {"5s", "30s", "10min"}}),
              field("detail", SCENARIO_MEMBER(detail), any(),
                    "Compare the purpose of each collective (step, epoch, bucket, label) on all "
                    "ranks before bytes move. false: compare only operation, elements, type and "
                    "root, as PyTorch does without TORCH_DISTRIBUTED_DEBUG=DETAIL; ranks that are "
                    "out of step then exchange data. On `nccl` the ranks compare through the "
                    "store, while the collectives run; with false they compare nothing."),
          },
      .sections = {model_section(), data_section(), sampler_section(), optimizer_section(),
                   train_section(), ddp_section(), cluster_section(), communication_section(),
                   simulation_section(), gloo_section(), nccl_section(), output_section(),
                   expect_section(), faults_section(), imperfections_section()},
  };
}

}  // namespace

const Section& root() {
  static std::mutex mutex;
  static std::map<std::size_t, std::unique_ptr<const Section>> roots;  // by the number of kinds
  const std::size_t count = registered_kinds_count();
  const std::scoped_lock lock(mutex);
  std::unique_ptr<const Section>& section = roots[count];
  if (!section) section = std::make_unique<const Section>(make_root());
  return *section;
}

std::vector<const Field*> fields_of(const Section& section, const std::string& kind) {
  std::vector<const Field*> fields;
  for (const Field& field : section.fields) {
    const auto& kinds = field.kinds;
    if (kinds.empty() || std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) {
      fields.push_back(&field);
    }
  }
  for (const Kind& candidate : section.kinds) {
    if (candidate.name != kind) continue;
    for (const Field& field : candidate.fields) fields.push_back(&field);
  }
  return fields;
}

std::vector<std::string> kinds_with(const Section& section, const std::string& field) {
  std::vector<std::string> kinds;
  for (const Kind& kind : section.kinds) {
    const auto fields = fields_of(section, kind.name);
    if (std::any_of(fields.begin(), fields.end(),
                    [&](const Field* f) { return f->name == field; })) {
      kinds.push_back(kind.name);
    }
  }
  return kinds;
}

std::string kind_of(const Section& section, const Object& object) {
  for (const Kind& kind : section.kinds) {
    if (kind.selected(object)) return kind.name;
  }
  return "";
}

void with_default_of(const Section& section, const std::string& kind,
                     const std::function<void(const Object&)>& use) {
  section.with_default([&](const Object& object) {
    for (const Kind& candidate : section.kinds) {
      if (candidate.name == kind) candidate.select(object);
    }
    use(object);
  });
}

Json default_of(const Section& section, const Field& field, const std::string& kind) {
  Json value;
  if (field.required) return value;
  with_default_of(section, kind, [&](const Object& object) { value = field.write(object); });
  return value;
}

}  // namespace gradsync::scenario_table
