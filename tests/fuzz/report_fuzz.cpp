// Damaged dumps: whatever the bytes, reading a rank's report ends with a report or an Error, and a
// report that could be read leads to an answer.
//
//     report_fuzz ITERATIONS [SEED]     a number of rounds, the same on every machine (CTest)
//     report_fuzz SECONDSs [SEED]       for so many seconds, by hand: report_fuzz 600s
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "gradsync/testbed/record/rank_report_json.hpp"
#include "tests/fuzz/damage.hpp"
#include "tests/support/hand_made_reports.hpp"

using namespace gradsync;

int main(int argc, char** argv) {
  const std::string amount = argc > 1 ? argv[1] : "2000";
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const bool timed = amount.ends_with('s');
  const auto limit = std::strtoll(amount.c_str(), nullptr, 10);
  std::mt19937_64 random(seed);
  const Scenario scenario = test::uneven_scenario();
  std::vector<std::string> texts;
  for (const RankReport& report : test::uneven_reports_real()) {
    texts.push_back(to_json(report).dump());
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(timed ? limit : 0);
  long long rounds = 0, read = 0;
  while (timed ? std::chrono::steady_clock::now() < end : rounds < limit) {
    ++rounds;
    std::vector<RankReport> reports;
    for (const std::string& text : texts) {
      try {
        reports.push_back(rank_report_from_text(test::damage(text, random), "dump"));
        ++read;
      } catch (const Error&) {
        continue;  // said what is wrong with it
      }
    }
    if (const auto found = diagnose(reports, scenario)) {
      if (format_text(*found).empty() || to_json(*found).empty()) return EXIT_FAILURE;
    }
  }
  std::cout << rounds << " rounds, " << read << " damaged reports could be read, no crash\n";
  return EXIT_SUCCESS;
}
