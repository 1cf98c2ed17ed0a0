// The rows of "simulation", "gloo", "nccl" and "output": the world of a run, and its files.

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
      .description = "How finely the simulator looks.",
      .fields = {field(
          "fidelity", SCENARIO_MEMBER(fidelity), any(),
          "`message`: every message of a collective, with payload where the model has one; `flow`: "
          "one flow for each hop and bucket, for thousands of ranks; `analytic`: a closed form, "
          "and one actor for all ranks that are alike; `auto`: the finest that is quick.")},
  };
}

Section gloo_section() {
  return {
      .name = "gloo",
      .description = "The Gloo backend.",
      .fields =
          {
              field("threads", SCENARIO_MEMBER(gloo.threads), between(1, 2),
                    "Communication threads of a rank. With 1, collectives run in program order; "
                    "PyTorch has 2."),
              field("interface", SCENARIO_MEMBER(gloo.interface), any(),
                    "Network interface, as in GLOO_SOCKET_IFNAME; empty: the one that reaches "
                    "MASTER_ADDR.",
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
                    "GPU of each local rank, as CUDA numbers those that CUDA_VISIBLE_DEVICES "
                    "leaves; empty: local rank k has GPU k."),
              field("register_buffers", SCENARIO_MEMBER(nccl.register_buffers), any(),
                    "Take memory from NCCL and register buffers from 1 MiB on, so that it can use "
                    "them without a copy (NCCL 2.19 and later)."),
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
                    "Ranks whose steps and events are written one by one; the others are summed up "
                    "only."),
              field("flight_recorder_size", SCENARIO_MEMBER(output.flight_recorder_size),
                    at_least(1), "Collectives that each rank's flight record keeps."),
          },
  };
}

}  // namespace gradsync::scenario_table
