#include "tools/command/run_printer.hpp"

#include <functional>
#include <ostream>

#include <fmt/format.h>

#include "gradsync/testbed/diagnosis/diagnosis.hpp"

namespace gradsync {
namespace {

bool is_printed(std::int64_t step) {
  std::int64_t stride = 1;
  while (step / stride >= 10) stride *= 10;
  return step % stride == 0;
}

std::string with_separators(std::int64_t count) {
  std::string digits = std::to_string(count);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

std::string four_decimals(const std::optional<double>& value) {
  return value ? fmt::format("{:.4f}", *value) : "-";
}

std::string milliseconds(const std::optional<double>& seconds) {
  if (!seconds) return "-";
  // Three digits: 0.533 ms, 35.8 ms, 584 ms, 1450 ms.
  const double ms = *seconds * 1e3;
  return fmt::format("{:.{}f} ms", ms, ms < 1 ? 3 : ms < 10 ? 2 : ms < 100 ? 1 : 0);
}

std::string describe_buckets(const RunResult::Ddp& ddp) {
  constexpr std::size_t kShown = 4;
  std::string sizes;
  for (std::size_t i = 0; i < ddp.buckets.size() && i < kShown; ++i) {
    sizes += (i == 0 ? "" : ", ") + format_bytes_human(ddp.buckets[i].bytes);
  }
  if (ddp.buckets.size() > kShown) sizes += ", ...";
  return fmt::format("{} ({}{})", ddp.buckets.size(), sizes, ddp.rebuilt ? "; rebuilt" : "");
}

}  // namespace

std::string count_of(std::int64_t count, const std::string& thing) {
  return with_separators(count) + " " + thing + (count == 1 ? "" : "s");
}

void print_header(std::ostream& stream, const Scenario& scenario,
                  const std::string& run_directory) {
  stream << fmt::format("# {} on {}, {}; results in {}\n", scenario.name, scenario.backend,
                        count_of(scenario.ranks, "rank"), run_directory)
         << std::flush;
}

void StepPrinter::operator()(const StepRecord& step) {
  if (!is_printed(step.step)) return;
  if (!heading_printed_) {
    stream_ << fmt::format("#{:>7}{:>8}{:>12}{:>12}{:>12}\n", "step", "epoch", "loss", "norm",
                           "step_ms");
    heading_printed_ = true;
  }
  const double step_ms = (step.optimizer_end - step.begin).count() * 1e3;
  stream_ << fmt::format("{:>8}{:>8}{:>12}{:>12}{:>12.2f}", step.step, step.epoch,
                         four_decimals(step.loss), four_decimals(step.grad_norm), step_ms)
          << std::endl;  // flush, because somebody is waiting for it
}

namespace {

using PrintLine = std::function<void(const char* name, const std::string& value)>;

/// Where a step's time goes, and who costs the others some of it.
void print_step_times(const PrintLine& line, const RunResult& result) {
  line("step",
       fmt::format("{} (p50 {}, p95 {})", milliseconds(result.step_seconds.mean),
                   milliseconds(result.step_seconds.p50), milliseconds(result.step_seconds.p95)));
  const auto& steady = result.steady_step_seconds;
  if (steady.steps > 1) {
    line("steady steps", fmt::format("p50 {}, p95 {}: {} after the first", milliseconds(steady.p50),
                                     milliseconds(steady.p95), count_of(steady.steps, "step")));
  }
  const std::string late = diagnosis::describe(result.blame);
  if (!late.empty()) line("late ranks", "cost " + late);
  constexpr Seconds kLateStart{0.01};
  if (const auto& start = result.blame.start; start && start->late >= kLateStart) {
    line("late start",
         fmt::format("rank {}, {:.3g} s after the others", start->rank, start->late.count()));
  }
  for (const auto& network : result.blame.network) {
    line("slow network", diagnosis::describe(network));
  }
  const auto& times = result.time_breakdown;
  line("  forward", milliseconds(times.forward));
  line("  backward", milliseconds(times.backward_compute));
  line("  communication", fmt::format("{}, of which exposed {}", milliseconds(times.backward_comm),
                                      milliseconds(times.exposed_comm)));
  line("  optimizer", milliseconds(times.optimizer));
  const std::string busiest = describe_busiest(result.network);
  if (!busiest.empty()) line("busiest link", busiest);
}

}  // namespace

void print_result(std::ostream& stream, const RunResult& result, const std::string& run_directory,
                  const Style& style) {
  const PrintLine line = [&](const char* name, const std::string& value) {
    stream << fmt::format("  {:<18}{}\n", name, value);
  };
  const std::string outcome = to_string(result.outcome);
  const bool completed = result.outcome == Outcome::kCompleted;
  stream << (completed ? style.good(outcome) : style.bad(outcome))
         << fmt::format(": {} on {}, {}, {}\n", result.scenario, result.backend,
                        count_of(result.world_size, "rank"),
                        count_of(result.steps_completed, "step"));
  for (const std::string& note : result.notes) line("note", note);
  line("parameters",
       fmt::format("{} in {} tensors, {}", result.parameters.count, result.parameters.tensors,
                   format_bytes_human(result.parameters.bytes)));
  if (result.parameter_hash) line("parameter hash", *result.parameter_hash);
  if (result.loss.first) {
    line("loss", fmt::format("{} -> {}", four_decimals(result.loss.first),
                             four_decimals(result.loss.last)));
  }
  if (result.step_seconds.mean) print_step_times(line, result);
  if (!result.ddp.buckets.empty()) line("buckets", describe_buckets(result.ddp));
  line("time", result.simulated_seconds
                   ? fmt::format("{:.3g} s simulated, in {:.3g} s", *result.simulated_seconds,
                                 result.wall_seconds)
                   : fmt::format("{:.3g} s", result.wall_seconds));
  if (!run_directory.empty()) line("run directory", run_directory);
  if (!result.diagnosis) return;
  if (result.diagnosis->verdict == "clean") {
    line("note", result.diagnosis->because);
  } else {
    stream << '\n' << format_text(*result.diagnosis);
  }
}

}  // namespace gradsync
