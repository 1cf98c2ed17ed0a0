// A fit that has seen three rows of a published table, near 1, 32 and 1,024 MiB, beside the rest.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/json_text.hpp"
#include "gradsync/predict/accuracy.hpp"
#include "gradsync/predict/outliers.hpp"
#include "gradsync/testbed/record/files.hpp"
#include "tests/cli/command.hpp"
#include "tests/cli/scenarios.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync::test;
using gradsync::AccuracyRow;
using gradsync::AccuracyTable;
using gradsync::Bytes;
namespace fs = std::filesystem;

namespace {

constexpr Bytes kMiB = 1 << 20;

/// The places of the rows nearest to 1, 32 and 1,024 MiB; empty where one is further than a factor
/// of two away, or where the table has rows of several numbers of ranks.
std::vector<std::size_t> three_rows(const AccuracyTable& table) {
  std::vector<std::size_t> places;
  for (const Bytes mib : {1, 32, 1024}) {
    const auto distance = [&](const AccuracyRow& row) {
      return std::abs(std::log2(static_cast<double>(row.bytes) / static_cast<double>(mib * kMiB)));
    };
    const auto nearest = std::min_element(
        table.rows.begin(), table.rows.end(),
        [&](const AccuracyRow& a, const AccuracyRow& b) { return distance(a) < distance(b); });
    if (distance(*nearest) > 1 || nearest->ranks != table.rows.front().ranks) return {};
    places.push_back(static_cast<std::size_t>(nearest - table.rows.begin()));
  }
  return places;
}

/// The published tables of healthy machines that have such rows and others above 1 MiB.
std::vector<AccuracyTable> tables() {
  std::vector<AccuracyTable> all;
  for (const auto& entry : fs::directory_iterator(shipped("validation"))) {
    AccuracyTable table = gradsync::load_accuracy_table(entry.path());
    if (table.is_training || table.rows.size() < 6 || three_rows(table).empty()) continue;
    std::vector<gradsync::MeasuredTime> rows;
    for (const AccuracyRow& row : table.rows) {
      rows.push_back({static_cast<int>(row.ranks), row.bytes, row.measured});
    }
    if (gradsync::outlier_signs(rows, {}).empty()) all.push_back(std::move(table));
  }
  std::sort(all.begin(), all.end(),
            [](const AccuracyTable& a, const AccuracyTable& b) { return a.file < b.file; });
  return all;
}

std::string log_of(const AccuracyTable& table, const std::vector<std::size_t>& places) {
  std::string text;
  for (const std::size_t place : places) {
    const AccuracyRow& row = table.rows[place];
    text += fmt::format("{} {} float sum -1 {:.3f} N/A N/A 0\n", row.bytes, row.bytes / 4,
                        row.measured.count() * 1e6);
  }
  return text;
}

/// A copy of the table's file with some of its rows and, if given, another cluster.
void write_table(const AccuracyTable& table, const std::vector<std::size_t>& places,
                 const nlohmann::ordered_json& cluster, const fs::path& file) {
  auto json = gradsync::parse_json(gradsync::read_file(table.file));
  json.erase("left_out");
  json["scenario"]["cluster"] = cluster;
  auto& rows = json["rows"];
  auto some = nlohmann::ordered_json::array();
  for (const std::size_t place : places) some.push_back(rows.at(place));
  rows = some;
  std::ofstream(file) << gradsync::dump_json(json);
}

/// The errors that `gradsync validate` prints for the table, above 1 MiB first.
std::vector<double> errors_of(const fs::path& table) {
  const CommandResult result = run_command({"validate", table.string(), "--format", "json"});
  CAPTURE(result.err);
  std::vector<double> errors;
  const auto json = gradsync::parse_json(result.out);
  for (const auto& group : json.at("tables").at(0).at("groups")) {
    errors.push_back(group.at("geometric_mean_error").get<double>());
  }
  return errors;
}

/// Fits the table's own description to three of its rows, and compares the errors of the others
/// with those of the description as it was.
void check_description(const AccuracyTable& table, const fs::path& folder) {
  auto cluster = table.scenario.at("cluster");
  if (cluster.is_string()) {
    cluster = fs::weakly_canonical(table.file.parent_path() / cluster.get<std::string>()).string();
  }
  const auto seen = three_rows(table);
  std::vector<std::size_t> rest;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    if (std::find(seen.begin(), seen.end(), i) == seen.end()) rest.push_back(i);
  }
  write_table(table, seen, cluster, folder / "seen.json");
  write_table(table, rest, cluster, folder / "rest.json");
  const std::vector<double> as_described = errors_of(folder / "rest.json");
  const CommandResult fit = run_command(
      {"fit", (folder / "seen.json").string(), "--out", (folder / "fitted.json").string()});
  write_table(table, rest, (folder / "fitted.json").string(), folder / "rest.json");
  const std::vector<double> fitted = errors_of(folder / "rest.json");
  CAPTURE(table.name, fit.out, fit.err, as_described, fitted);
  REQUIRE(fitted.size() == as_described.size());
  for (std::size_t i = 0; i < fitted.size(); ++i) CHECK(fitted[i] < as_described[i] + 0.01);
}

}  // namespace

TEST_CASE("fit --cluster: three rows of a table make no other part of it worse") {
  const TemporaryDirectory directory;
  const auto all = tables();
  for (std::size_t i = 0; i < all.size(); i += 4) check_description(all[i], directory.path());
}

TEST_CASE("fit --cluster: three rows of every published table", "[.whole]") {
  const TemporaryDirectory directory;
  for (const AccuracyTable& table : tables()) check_description(table, directory.path());
}

TEST_CASE("fit: three rows of a table predict its others above 1 MiB within 10%") {
  const TemporaryDirectory directory;
  const auto healthy = tables();
  REQUIRE(healthy.size() >= 3);
  for (const AccuracyTable& table : healthy) {
    const auto places = three_rows(table);
    const std::string log = directory.path() / "log.txt";
    std::ofstream(log) << log_of(table, places);
    std::vector<AccuracyRow> rest;
    std::string sizes;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      const bool seen = std::find(places.begin(), places.end(), i) != places.end();
      if (seen || table.rows[i].bytes <= kMiB) continue;
      rest.push_back(table.rows[i]);
      sizes += (sizes.empty() ? "" : ",") + std::to_string(table.rows[i].bytes);
    }
    const CommandResult fit = run_command(
        {"fit", log, "--ranks", std::to_string(table.rows.front().ranks), "--predict", sizes});
    CAPTURE(table.name, fit.out, fit.err);
    std::istringstream lines(fit.out);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      Bytes bytes = 0;
      double time_us = 0;
      if (!(words >> bytes >> time_us)) continue;
      for (AccuracyRow& row : rest) {
        if (row.bytes == bytes && line.find(" us") != std::string::npos) {
          row.simulated = gradsync::Seconds(time_us * 1e-6);
        }
      }
    }
    // PyTorch's timer sees the host's share of each call, which bends where three rows say nothing.
    const bool is_host_timed = table.name.find("timed from PyTorch") != std::string::npos;
    CHECK(gradsync::geometric_mean_error(rest) < (is_host_timed ? 0.12 : 0.1));
  }
}
