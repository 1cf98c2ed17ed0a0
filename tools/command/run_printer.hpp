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

/// What is about to run, and where its results will be.
void print_header(std::ostream& stream, const Scenario& scenario, const std::string& run_directory);

/// Prints the steps of rank 0 as they happen, one line each: all of the first ten, then every tenth
/// up to 100, every hundredth up to 1000, and so on, so that a long run stays readable. Lines that
/// begin with '#' are headings.
class StepPrinter {
 public:
  explicit StepPrinter(std::ostream& stream) : stream_(stream) {}
  void operator()(const StepRecord& step);

 private:
  std::ostream& stream_;
  bool heading_printed_ = false;
};

/// What a person wants to know of a run that is over. Every figure stands in result.json too.
void print_result(std::ostream& stream, const RunResult& result, const std::string& run_directory,
                  const Style& style);

}  // namespace gradsync
