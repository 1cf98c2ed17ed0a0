// The rows of "simulation", "gloo", "nccl" and "output": the backends, and the files of a run.

#include "gradsync/testbed/scenario/scenario_codec.hpp"

namespace gradsync::scenario_table {

template <>
struct EnumNames<Fidelity> {
  static constexpr std::array<std::pair<const char*, Fidelity>, 4> kNames{
      {{"auto", Fidelity::kAuto},
       {"message", Fidelity::kMessage},
       {"flow", Fidelity::kFlow},
       {"analytic", Fidelity::kAnalytic}}};
};

Section simulation_section() {
  return {
      .name = "simulation",
      .description = "How detailed the simulation is.",
      .fields = {field(
          "fidelity", SCENARIO_MEMBER(fidelity), any(),
          "`message`: every message of a collective, with payload if the model has any. `flow`: "
          "one flow per hop and bucket, for thousands of ranks. `analytic`: a closed form, with "
          "one actor for all ranks that are alike. `auto`: the most detailed one that is fast.")},
  };
}

Section gloo_section() {
  return {
      .name = "gloo",
      .description = "The Gloo backend.",
      .fields =
          {
              field("threads", SCENARIO_MEMBER(gloo.threads), between(1, 2),
                    "Number of communication threads per rank. With 1, collectives run in program "
                    "order; PyTorch uses 2."),
              field("interface", SCENARIO_MEMBER(gloo.interface), any(),
                    "Network interface, as in GLOO_SOCKET_IFNAME; empty: the one through which "
                    "MASTER_ADDR is reached.",
                    {.examples = {"eth0"}}),
          },
  };
}

Section nccl_section() {
  return {
      .name = "nccl",
      .description = "The NCCL backend.",
      .fields =
          {
              field("device_ids", SCENARIO_MEMBER(nccl.device_ids), at_least(0),
                    "GPU of each local rank, numbered among those that CUDA_VISIBLE_DEVICES "
                    "leaves; empty: local rank k uses GPU k."),
              field("register_buffers", SCENARIO_MEMBER(nccl.register_buffers), any(),
                    "Allocate memory through NCCL and register buffers of 1 MiB and more, so that "
                    "NCCL can use them without a copy (NCCL 2.19 and later)."),
          },
  };
}

Section output_section() {
  return {
      .name = "output",
      .description = "What the run directory holds.",
      .fields =
          {
              field("detail_ranks", SCENARIO_MEMBER(output.detail_ranks), at_least(0),
                    "Number of ranks whose steps and events are written individually; the others "
                    "appear in summaries only."),
              field("flight_recorder_size", SCENARIO_MEMBER(output.flight_recorder_size),
                    at_least(1),
                    "Number of collectives that the flight record of each rank keeps."),
          },
  };
}

}  // namespace gradsync::scenario_table
