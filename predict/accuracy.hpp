#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// One published measurement and its simulation.
struct AccuracyRow {
  std::string what;  ///< "25 MiB", "resnet50 on 16 GPUs"
  std::int64_t ranks = 0;
  Bytes bytes = 0;  ///< size of the all-reduce; 0 for a training step
  Seconds measured{0};
  Seconds simulated{0};
  Seconds left_out{0};         ///< simulated with AccuracyTable::left_out; 0 without it
  nlohmann::ordered_json set;  ///< training: overrides of the scenario, path to value

  /// simulated / measured - 1
  double error() const { return simulated / measured - 1; }
};

/// A published table, read from a file in scenarios/validation/. The file names the source of the
/// numbers, the machines they were measured on, and the fitted numbers of the cluster description.
///
///     {"name", "kind": "allreduce" | "training", "source", "machines",
///      "fitted": ["cluster.software.per_operation", ...]   at most two
///      "beyond_budget": why the model misses its budget here (absent if it does not)
///      "left_out": overrides of the scenario, path to value: the constants as fitted to all other
///                  tables (bench/fit_constants.py writes them), for the cross-validation
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
  /// Signs of a faulty machine or a disturbed run (outliers.hpp). A table that has one is an
  /// outlier: it has errors, but no budget.
  std::vector<std::string> outlier_signs;
};

/// Throws ConfigError with a JSON pointer for a malformed file.
AccuracyTable load_accuracy_table(const std::filesystem::path& file);

/// The part of a table that shares an error budget.
struct AccuracyGroup {
  std::string table;
  std::string part;  ///< "above 1 MiB", "up to 1 MiB", "step time"
  std::size_t rows = 0;
  double geometric_mean = 0;              ///< error, see below
  std::optional<double> cross_validated;  ///< the same with constants that never saw the table
  double worst = 0;                       ///< error of largest magnitude, with its sign
  double budget = 0;
  bool within = false;
  bool is_outlier = false;  ///< the budget does not apply
  std::string fitted;
  std::string beyond_budget;
};

/// Error budgets: a geometric mean error of 10% for all-reduces above 1 MiB and 25% for those up to
/// 1 MiB; for training, 8% for every step time. If there is a cross-validated error, it is the one
/// that counts.
///
/// The geometric mean error of ratios r = simulated / measured is exp(mean |ln r|) - 1: twice the
/// time counts as much as half the time, and errors of opposite sign do not cancel.
std::vector<AccuracyGroup> judge(const AccuracyTable& table);

/// The errors of all tables of all-reduces that are not outliers, in one part: a table has the same
/// weight whatever its number of rows. Those without a cross-validated error are left out of it.
struct AccuracySummary {
  std::string part;  ///< "above 1 MiB", "up to 1 MiB"
  int tables = 0;
  double geometric_mean = 0;
  int cross_validated_tables = 0;
  double cross_validated = 0;
};
std::vector<AccuracySummary> summarize(const std::vector<AccuracyTable>& tables);

double geometric_mean_error(const std::vector<AccuracyRow>& rows);

/// The objective of `fit`: the mean of |ln r| over the rows, each weighted by the inverse of its
/// budget.
double weighted_error(const std::vector<AccuracyRow>& rows);

// The answer for a terminal, for docs/accuracy.md, and as JSON.
std::string accuracy_text(const std::vector<AccuracyTable>& tables, bool with_rows);
std::string accuracy_markdown(const std::vector<AccuracyTable>& tables);
nlohmann::ordered_json accuracy_json(const std::vector<AccuracyTable>& tables);

}  // namespace gradsync
