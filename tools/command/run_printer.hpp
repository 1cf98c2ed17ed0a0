#pragma once

#include <iosfwd>
#include <string>

#include "gradsync/testbed/record/rank_report.hpp"
#include "gradsync/testbed/result/run_result.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"
#include "tools/command/terminal.hpp"

namespace gradsync {

/// "1 rank", "1,024 ranks"
std::string count_of(std::int64_t count, const std::string& thing);

/// Prints what is about to run, and where its results will be.
void print_header(std::ostream& stream, const Scenario& scenario, const std::string& run_directory);

/// Prints the steps of rank 0 as they complete, one line each: all of the first ten, then every
/// tenth up to 100, every hundredth up to 1000, and so on, so that the output of a long run stays
/// readable. Lines that start with '#' are headings.
class StepPrinter {
 public:
  explicit StepPrinter(std::ostream& stream) : stream_(stream) {}
  void operator()(const StepRecord& step);

 private:
  std::ostream& stream_;
  bool heading_printed_ = false;
};

/// Prints the summary of a finished run. All its figures are also in result.json.
void print_result(std::ostream& stream, const RunResult& result, const std::string& run_directory,
                  const Style& style);

}  // namespace gradsync
