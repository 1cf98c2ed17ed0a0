#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// One measurement that somebody published, and what the simulation says to it.
struct AccuracyRow {
  std::string what;  ///< "25 MiB", "resnet50 on 16 GPUs"
  std::int64_t ranks = 0;
  Bytes bytes = 0;  ///< of an all-reduce; 0 for a training step
  Seconds measured{0};
  Seconds simulated{0};
  Seconds left_out{0};         ///< simulated with AccuracyTable::left_out; 0 where there is none
  nlohmann::ordered_json set;  ///< training: assignments to the scenario, path to value

  /// simulated / measured - 1
  double error() const { return simulated / measured - 1; }
};

/// A published table, read from a file in scenarios/validation/. The file says where the numbers
/// are from, on what machines they were measured, and which numbers of the description were fitted.
///
///     {"name", "kind": "allreduce" | "training", "source", "machines",
///      "fitted": ["cluster.software.per_operation", ...]   at most two
///      "beyond_budget": why the model does not reach its budget here (absent where it does)
///      "left_out": assignments to the scenario, path to value: the constants as all other tables
///                  have them (bench/fit_constants.py writes it), for a cross-validation
///      "scenario": {"ranks", "cluster", ...}               what is simulated
///      "rows": allreduce: {"size", "time_us" or "busbw", "ranks"?}
///              training:  {"what", "step_ms", "ranks"?, "set"?}}
struct AccuracyTable {
  std::filesystem::path file;
  std::string name;
  std::string source;
  std::string machines;
  bool is_training = false;
  std::vector<std::string> fitted;
  std::string beyond_budget;
  nlohmann::ordered_json left_out;  ///< null: there is no cross-validation
  nlohmann::ordered_json scenario;
  std::vector<AccuracyRow> rows;
};

/// Throws ConfigError, with a JSON pointer, for a file of another form.
AccuracyTable load_accuracy_table(const std::filesystem::path& file);

/// The part of a table that has a budget of its own.
struct AccuracyGroup {
  std::string table;
  std::string part;  ///< "above 1 MiB", "up to 1 MiB", "step time"
  std::size_t rows = 0;
  double geometric_mean = 0;              ///< error, see below
  std::optional<double> cross_validated;  ///< the same with constants that never saw the table
  double worst = 0;                       ///< error of largest magnitude, with its sign
  double budget = 0;
  bool within = false;
  std::string fitted;
  std::string beyond_budget;
};

/// Budgets: a geometric mean error of 10% for all-reduces above 1 MiB and of 25% for those up to
/// it; for training an error of 8% in every step time. Where there is a cross-validated error, that
/// one counts.
///
/// The geometric mean error of ratios r = simulated / measured is exp(mean |ln r|) - 1: twice as
/// long counts as much as half as long, and no lucky row pulls it to zero.
std::vector<AccuracyGroup> judge(const AccuracyTable& table);
double geometric_mean_error(const std::vector<AccuracyRow>& rows);

/// What `fit` minimises: the mean of |ln r| over rows, each weighted by the inverse of its budget.
double weighted_error(const std::vector<AccuracyRow>& rows);

// The answer for a terminal, for docs/accuracy.md, and for programs.
std::string accuracy_text(const std::vector<AccuracyTable>& tables, bool with_rows);
std::string accuracy_markdown(const std::vector<AccuracyTable>& tables);
nlohmann::ordered_json accuracy_json(const std::vector<AccuracyTable>& tables);

}  // namespace gradsync
