#include "gradsync/simulator/platform/traffic.hpp"

#include "gradsync/core/random.hpp"

namespace gradsync {

std::vector<TrafficFlow> draw_traffic(const ImperfectionSpec& spec, std::int64_t nodes) {
  std::vector<TrafficFlow> flows;
  const auto count = static_cast<std::uint64_t>(nodes);
  for (std::size_t item = 0; item < spec.traffic.size(); ++item) {
    const ImperfectionSpec::Traffic& traffic = spec.traffic[item];
    for (std::int64_t number = 0; number < traffic.flows; ++number) {
      const CounterRandom random(splitmix64(spec.seed) ^ splitmix64(~std::uint64_t{item}),
                                 static_cast<std::uint64_t>(number));
      TrafficFlow flow;
      flow.rate = traffic.rate.value_or(BytesPerSecond{});
      flow.on = traffic.on;
      flow.period = traffic.period;
      flow.begin = random.uniform(0) * traffic.period;
      // Keeps a given end; a drawn end differs from the other one.
      const auto other_than = [&](std::int64_t node, std::uint64_t draw) {
        const auto step = static_cast<std::int64_t>(random.bits(draw) % (count - 1));
        return (node + 1 + step) % nodes;
      };
      const auto any_node = static_cast<std::int64_t>(random.bits(1) % count);
      flow.from = traffic.from ? *traffic.from : traffic.to ? other_than(*traffic.to, 2) : any_node;
      flow.to = traffic.to ? *traffic.to : other_than(flow.from, 2);
      flows.push_back(flow);
    }
  }
  return flows;
}

}  // namespace gradsync
