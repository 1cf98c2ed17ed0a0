#pragma once

#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/testbed/rank/rank_main.hpp"
#include "tests/support/thread_process_group.hpp"

namespace gradsync::test {

/// Runs `run_rank` on threads of this process and returns what the ranks report. An error that
/// ended a rank is in its report.
inline std::vector<RankReport> train_ranks(
    const Scenario& scenario, Device& device = cpu_device(),
    std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  const int ranks = static_cast<int>(scenario.ranks);
  ThreadWorld world(ranks, timeout);
  std::vector<RankReport> reports(static_cast<std::size_t>(ranks));
  const auto inputs = load_inputs(scenario);
  try {
    run_ranks(world, [&](RankContext& context) {
      RankRuntime runtime;
      runtime.process_group = &context.group;
      runtime.clock = &context.clock;
      runtime.device = &device;
      runtime.inputs = inputs;
      run_rank(scenario, runtime, reports[static_cast<std::size_t>(context.rank)]);
    });
  } catch (const Error&) {
    // It stands in the report of its rank.
  }
  return reports;
}

/// A transformer that trains in milliseconds: 2 ranks, 16 samples of 4 tokens, batch 2, 4 steps.
inline Scenario tiny_scenario() {
  Scenario scenario;
  scenario.name = "tiny";
  scenario.ranks = 2;
  scenario.model.transformer = {.vocab_size = 11,
                                .d_model = 8,
                                .nhead = 2,
                                .num_layers = 1,
                                .dim_feedforward = 16,
                                .norm_first = false};
  scenario.data.samples = 16;
  scenario.data.seq_len = 4;
  scenario.data.vocab_size = 11;
  scenario.train.batch_size = 2;
  scenario.optimizer.options = AdamWOptions{.lr = 1e-2};
  return scenario;
}

}  // namespace gradsync::test
