// gradsync's side of the differential tests: one rank of one case.
//
//     RANK=r WORLD_SIZE=w MASTER_ADDR=127.0.0.1 MASTER_PORT=p torch_differential_runner CASE.json
//     [--stepwise]
//
// Leaves gradsync-R.json and gradsync-R.bin (tests/torch/results.py) beside the case. With
// --stepwise each step starts from the parameters that torch-R.* has for it, and the files are
// gradsync-stepwise-R.*.
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

#include "gradsync/backends/gloo/gloo_process_group.hpp"
#include "gradsync/backends/store/rank_environment.hpp"
#include "gradsync/backends/store/rendezvous.hpp"
#include "gradsync/core/wall_clock.hpp"
#include "tests/torch/result_writer.hpp"
#include "tests/torch/training.hpp"

namespace {

void run_case(const std::filesystem::path& file, bool stepwise) {
  using namespace gradsync;
  const nlohmann::json described = nlohmann::json::parse(std::ifstream(file));
  const RankEnvironment environment = resolve_rank_environment({}).value();
  GlooProcessGroup::Options options;
  options.timeout = Seconds{60};
  options.flight_recorder_size = 1'000'000;  // all of them are compared
  const JobStore job = open_job_store(environment, options.timeout);
  WallClock clock;
  GlooProcessGroup group(environment, job, clock, options);

  const std::string rank = std::to_string(environment.rank);
  const std::filesystem::path directory = file.parent_path();
  std::optional<torch_tests::RecordedParameters> recorded;
  if (stepwise) recorded.emplace(directory / ("torch-" + rank));
  torch_tests::ResultWriter writer(directory /
                                   ((stepwise ? "gradsync-stepwise-" : "gradsync-") + rank));
  torch_tests::Training training(described, group, writer, recorded ? &*recorded : nullptr);
  writer.finish(training.run());
  group.shutdown();
}

}  // namespace

int main(int argc, char** argv) {
  const bool stepwise = argc == 3 && std::string_view(argv[2]) == "--stepwise";
  if (argc != 2 && !stepwise) {
    std::cerr << "usage: " << argv[0] << " CASE.json [--stepwise]\n";
    return EXIT_FAILURE;
  }
  try {
    run_case(argv[1], stepwise);
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << '\n';
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
