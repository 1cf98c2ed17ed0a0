#include "gradsync/testbed/rank/factories.hpp"
#include "gradsync/testbed/rank/rank_body.hpp"
#include "gradsync/testbed/record/step_json.hpp"

namespace gradsync {
namespace {

/// Whether all ranks have the same number of steps, with the same number of samples.
bool shards_are_alike(const Scenario& scenario) {
  const SamplerSpec& sampler = scenario.sampler;
  return sampler.shard_sizes.empty() &&
         (sampler.pad || sampler.drop_last || scenario.data.samples % scenario.ranks == 0);
}

RankMain load_training(const Scenario& scenario, const RunObserver& observer) {
  // Loaded once: a profile parsed by each of a thousand ranks costs a second and 60 MB.
  return [&scenario, &observer, inputs = load_inputs(scenario)](RankRuntime runtime,
                                                                RankReport& report) {
    runtime.inputs = inputs;
    if (observer && runtime.process_group->rank() == 0) {
      runtime.on_step = [&observer](const StepRecord& step) {
        nlohmann::ordered_json event = to_json(step);
        event["checksums"].clear();
        observer(event);
      };
    }
    run_rank(scenario, runtime, report);
  };
}

}  // namespace

RankBody training_body(const Scenario& scenario) {
  RankBody body;
  body.name = kTrainingBody;
  body.load = load_training;
  body.computes = scenario.model.kind != ModelSpec::Kind::kReplay;
  body.has_payload = body.computes || scenario.model.replay.payload;
  body.is_alike_on_all_ranks = !body.has_payload && shards_are_alike(scenario);
  return body;
}

}  // namespace gradsync
