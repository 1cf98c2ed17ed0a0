#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/predict/accuracy.hpp"
#include "tools/command/invocation.hpp"
#include "tools/command/machine_check.hpp"
#include "tools/command/shipped_files.hpp"
#include "tools/command/simulated_bench.hpp"

namespace gradsync {
namespace {

namespace fs = std::filesystem;

struct ValidateOptions {
  std::vector<std::string> paths = {"scenarios/validation"};
  std::string format = "text";
  bool rows = false;
};

/// A folder stands for the tables directly inside it, by name.
std::vector<fs::path> table_files(const std::vector<std::string>& paths) {
  std::vector<fs::path> files;
  for (const std::string& given : paths) {
    const fs::path path = shipped_path(given);
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<fs::path> inside;
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.path().extension() == ".json") inside.push_back(entry.path());
    }
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  if (files.empty()) throw Error(ErrorCode::kUsage, "there is no table to compare with");
  return files;
}

int validate(const ValidateOptions& options) {
  std::vector<AccuracyTable> tables;
  bool all_explained = true;  // within their budgets, or with a reason
  for (const fs::path& file : table_files(options.paths)) {
    AccuracyTable table = load_accuracy_table(file);
    simulate_table(table);
    if (!table.is_training) {
      table.outlier_signs =
          outlier_signs_of(table, cluster_with_defaults(table.scenario.at("cluster"), file.string(),
                                                        file.parent_path().string()));
    }
    for (const AccuracyGroup& group : judge(table)) {
      all_explained &= group.within || group.is_outlier || !group.beyond_budget.empty();
    }
    tables.push_back(std::move(table));
  }
  if (options.format == "json") {
    std::cout << dump_json(accuracy_json(tables), 2) << '\n';
  } else if (options.format == "md") {
    std::cout << accuracy_markdown(tables);
  } else {
    std::cout << accuracy_text(tables, options.rows);
  }
  return all_explained ? 0 : 1;
}

}  // namespace

void add_validate_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      app.add_subcommand("validate", "Compare the simulator with published measurements");
  command->footer(
      "The exit status is 1 if a part of a table is beyond its budget and gives no reason for it\n"
      "(docs/accuracy.md). Where a table has a cross-validated error, that one counts. A table "
      "with\n"
      "signs of a faulty machine, by its measurements alone, is listed as an outlier and does not "
      "count.");
  auto options = std::make_shared<ValidateOptions>();
  command->add_option("PATH", options->paths, "Tables, or folders of them")->capture_default_str();
  command->add_option("--format", options->format, "Format of the output")
      ->check(CLI::IsMember({"text", "md", "json"}))
      ->capture_default_str();
  command->add_flag("--rows", options->rows, "Print every row, not only the summary");
  command->callback(
      [options, &invocation] { invocation.action = [options] { return validate(*options); }; });
}

}  // namespace gradsync
