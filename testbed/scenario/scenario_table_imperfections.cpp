// The rows of "imperfections".

#include "gradsync/testbed/scenario/scenario_codec.hpp"

namespace gradsync::scenario_table {

template <>
struct EnumNames<ImperfectionSpec::Distribution> {
  using E = ImperfectionSpec::Distribution;
  static constexpr std::array<std::pair<const char*, E>, 2> kNames{
      {{"lognormal", E::kLognormal}, {"normal", E::kNormal}}};
};

namespace {

constexpr const char* kWhichRanks = "The ranks on which it happens; `[]`: all.";

Section compute_section() {
  return {
      .name = "compute",
      .description = "How evenly ranks compute. Each sigma is that of a factor with mean 1.",
      .fields =
          {
              field("spread", SCENARIO_MEMBER(imperfections.compute_spread), between(0, 2),
                    "Sigma of a factor on all compute of a rank, drawn once per rank: hardware "
                    "that is not identical.",
                    {.examples = {0.02}}),
              field("jitter", SCENARIO_MEMBER(imperfections.compute_jitter), between(0, 2),
                    "Sigma of a factor drawn for each rank and step.", {.examples = {0.05}}),
              field("distribution", SCENARIO_MEMBER(imperfections.distribution), any(),
                    "Distribution of both factors: `lognormal`, exp(sigma z - sigma^2/2), or "
                    "`normal`, 1 + sigma z but at least 0."),
              field("while_communicating", SCENARIO_MEMBER(imperfections.while_communicating),
                    at_least(1),
                    "Factor on the duration of compute while the rank has a collective under way, "
                    "whose kernels share cores and memory with it. `sim` only.",
                    {.examples = {1.08}}),
          },
  };
}

Section links_section() {
  using Spec = ImperfectionSpec;
  return list_section<Spec::Link>(
      "links",
      "A list. Cables that are slow, as with the fault `link`, or periodically down. `sim` only; "
      "with "
      "fidelity `analytic`, cables cannot change during the run.",
      SCENARIO_MEMBER(imperfections.links),
      {field("link", &Spec::Link::link, any(),
             "Name of the cable as in `result.json`, such as `nic-3-0` (adapter 0 of node 3), "
             "`rank-5` (the GPU of rank 5) or `leaf-1`; with the suffix `_UP` or `_DOWN`, one "
             "direction.",
             {.examples = {"nic-3-0"}}),
       field("node", &Spec::Link::node, at_least(0),
             "Instead of a name: all adapters of this node."),
       field("factor", &Spec::Link::factor, above(0),
             "Factor by which the bandwidth is multiplied.", {.examples = {0.5}}),
       field("latency", &Spec::Link::latency, at_least(0), "Additional latency.",
             {.examples = {"10us"}}),
       field("down", &Spec::Link::down, at_least(0),
             "Time for which the cable is down at the end of each period.", {.examples = {"20ms"}}),
       field("period", &Spec::Link::period, at_least(0),
             "Length of a period; `0s`: the cable is never down.", {.examples = {"1s"}})});
}

Section traffic_section() {
  using Spec = ImperfectionSpec;
  return list_section<Spec::Traffic>(
      "traffic",
      "A list. Flows of other jobs between nodes, which share the cables with this job. `sim` "
      "only, with "
      "fidelity `message` or `flow`.",
      SCENARIO_MEMBER(imperfections.traffic),
      {field("flows", &Spec::Traffic::flows, at_least(0), "Number of flows."),
       field("from", &Spec::Traffic::from, at_least(0),
             "Number of the node that sends; null: drawn for each flow."),
       field("to", &Spec::Traffic::to, at_least(0),
             "Number of the node that receives; null: drawn for each flow."),
       field("rate", &Spec::Traffic::rate, above(0),
             "Largest rate of each flow; null: its share of the cables.", {.examples = {"5GBps"}}),
       field("on", &Spec::Traffic::on, at_least(0),
             "Time for which a flow is on in each period; the first period begins at a random "
             "instant."),
       field("period", &Spec::Traffic::period, at_least(0), "Length of a period; `0s`: always on.",
             {.examples = {"100ms"}})});
}

}  // namespace

Section imperfections_section() {
  using Spec = ImperfectionSpec;
  return {
      .name = "imperfections",
      .description =
          "What keeps the cluster from being ideal: ranks that compute at different speeds, "
          "loaders that stall, slow links. The same seed gives the same run on every machine. What "
          "the backend or the fidelity cannot do is refused. "
          "[predict.md](predict.md#a-cluster-that-is-not-ideal) has an example, and shows how to "
          "find the rank that is to blame.",
      .fields = {field("seed", SCENARIO_MEMBER(imperfections.seed), any(),
                       "Seed of all random draws in this section, and of nothing else.")},
      .sections =
          {
              compute_section(),
              list_section<Spec::SlowRanks>(
                  "slow_ranks",
                  "A list. Ranks that compute slowly. The factors of several items are multiplied.",
                  SCENARIO_MEMBER(imperfections.slow_ranks),
                  {field("ranks", &Spec::SlowRanks::ranks, at_least(0), kWhichRanks),
                   field("factor", &Spec::SlowRanks::factor, above(0),
                         "Factor by which the time is multiplied, as with the fault `slow`.",
                         {.examples = {1.25}})}),
              list_section<Spec::LateRanks>(
                  "late_ranks", "A list. Ranks that start late, as with the fault `rendezvous`.",
                  SCENARIO_MEMBER(imperfections.late_ranks),
                  {field("ranks", &Spec::LateRanks::ranks, at_least(0), kWhichRanks),
                   field("duration", &Spec::LateRanks::duration, at_least(0),
                         "How late the rank starts.", {.examples = {"2s"}})}),
              list_section<Spec::LoaderStall>(
                  "loader_stalls",
                  "A list. Batches that come late, as with the fault `delay` at `data`, but "
                  "repeatedly.",
                  SCENARIO_MEMBER(imperfections.loader_stalls),
                  {field("ranks", &Spec::LoaderStall::ranks, at_least(0), kWhichRanks),
                   field("every", &Spec::LoaderStall::every, at_least(1), "In every n-th step.",
                         {.examples = {100}}),
                   field("probability", &Spec::LoaderStall::probability, between(0, 1),
                         "Probability of a stall, drawn for each rank and step.",
                         {.examples = {0.01}}),
                   field("duration", &Spec::LoaderStall::duration, at_least(0),
                         "Duration of a stall.", {.examples = {"200ms"}})}),
              links_section(),
              traffic_section(),
          },
  };
}

}  // namespace gradsync::scenario_table
