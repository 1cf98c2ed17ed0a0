// The rows of "expect": the checks of `gradsync check`.

#include "gradsync/testbed/scenario/scenario_codec.hpp"

namespace gradsync::scenario_table {

namespace {

Section loss_section() {
  return {.name = "loss",
          .description = "The loss, as a mean over ranks.",
          .fields = {
              field("last_min", SCENARIO_MEMBER(expect.loss_last_min), any(),
                    "Lower bound for the loss of the last step."),
              field("last_max", SCENARIO_MEMBER(expect.loss_last_max), any(),
                    "Upper bound for the loss of the last step."),
              field("last_ratio_max", SCENARIO_MEMBER(expect.loss_last_ratio_max), above(0),
                    "Upper bound for the loss of the last step divided by that of the "
                    "first."),
          }};
}

Section diagnosis_section() {
  return {
      .name = "diagnosis",
      .description = "The diagnosis of a run that does not complete.",
      .fields = {
          field("verdict", SCENARIO_MEMBER(expect.diagnosis_verdict),
                one_of({"deadlock", "waiting", "crash", "desync", "silent divergence", "clean"}),
                "The verdict."),
          field("catalog", SCENARIO_MEMBER(expect.diagnosis_catalog),
                matching("^K[0-9][0-9]$", "a code such as K01"), "Its entry in docs/hangs.md."),
          field("step", SCENARIO_MEMBER(expect.diagnosis_step), at_least(0),
                "The first wrong step."),
          field("collective", SCENARIO_MEMBER(expect.diagnosis_collective), any(),
                "Words that occur in the description of the collective in which it "
                "shows.",
                {.examples = {"bucket 0 (gradients)"}}),
          field("kind", SCENARIO_MEMBER(expect.diagnosis_kind), any(),
                "What went wrong, as in result.json.",
                {.examples = {"uneven_shards", "rank_died"}}),
          field("ranks", SCENARIO_MEMBER(expect.diagnosis_ranks), at_least(0),
                "The ranks that caused it; `[]`: not checked.",
                {.examples = {Json::array({2, 3})}}),
      }};
}

}  // namespace

Section expect_section() {
  return {
      .name = "expect",
      .description =
          "What `gradsync check` compares a run with. Only the keys that are given are checked.",
      .fields =
          {
              field("outcome", SCENARIO_MEMBER(expect.outcome),
                    one_of({"completed", "hang", "desync", "failed"}), "How the run ends."),
              field("exit_status", SCENARIO_MEMBER(expect.exit_status), between(0, 255),
                    "Exit status of `gradsync run`: 0 completed, 4 hang, 5 desync, 6 failed."),
              field("steps_completed", SCENARIO_MEMBER(expect.steps_completed), at_least(0),
                    "Optimizer steps that every rank has completed.", {.other_names = {"steps"}}),
              field("parameter_hash", SCENARIO_MEMBER(expect.parameter_hash),
                    matching("^[0-9a-f]{32}$", "32 hexadecimal digits"),
                    "Hash of all parameters after the last step. The hash of a computed model "
                    "depends on the processor; that of a replayed model with `payload` is the same "
                    "everywhere.",
                    {.other_names = {"hash"}}),
              field("equal_hashes_on_all_ranks", SCENARIO_MEMBER(expect.equal_hashes_on_all_ranks),
                    any(), "All ranks have the same hash after each step for which it is taken."),
              field("repeat", SCENARIO_MEMBER(expect.repeat), at_least(1),
                    "Number of runs; the hashes of all runs must be equal.",
                    {.other_names = {"repetitions", "runs"}}),
          },
      .sections = {loss_section(), diagnosis_section()},
  };
}

}  // namespace gradsync::scenario_table
