#include "gradsync/testbed/result/expectations.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"

namespace gradsync {
namespace {

std::string text(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "none";
}

/// Collects the results. Each check runs against every repetition; the first repetition that fails
/// it is reported as found.
class Checker {
 public:
  explicit Checker(const std::vector<RunResult>& results) : results_(results) {}

  template <typename Found, typename Meets>
  void hold(const char* what, const std::string& expected, const Found& found, const Meets& meets) {
    ExpectationResult result{what, expected, "no run", !results_.empty()};
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const bool ok = meets(results_[i]);
      if (i > 0 && ok) continue;
      result.found = found(results_[i]);
      result.ok = ok;
      if (ok) continue;
      if (results_.size() > 1) result.found += fmt::format(" in run {}", i + 1);
      break;
    }
    list_.push_back(std::move(result));
  }

  void add(ExpectationResult result) { list_.push_back(std::move(result)); }
  std::vector<ExpectationResult> take() { return std::move(list_); }

 private:
  const std::vector<RunResult>& results_;
  std::vector<ExpectationResult> list_;
};

void check_loss(Checker& checker, const ExpectSpec& expect) {
  const auto last = [](const RunResult& run) { return text(run.loss.last); };
  if (expect.loss_last_min) {
    checker.hold("/expect/loss/last_min", fmt::format("at least {}", *expect.loss_last_min), last,
                 [&](const RunResult& run) {
                   return run.loss.last && *run.loss.last >= *expect.loss_last_min;
                 });
  }
  if (expect.loss_last_max) {
    checker.hold("/expect/loss/last_max", fmt::format("at most {}", *expect.loss_last_max), last,
                 [&](const RunResult& run) {
                   return run.loss.last && *run.loss.last <= *expect.loss_last_max;
                 });
  }
  if (expect.loss_last_ratio_max) {
    const auto ratio = [](const RunResult& run) -> std::optional<double> {
      if (!run.loss.first || !run.loss.last) return std::nullopt;
      return *run.loss.last / *run.loss.first;
    };
    checker.hold(
        "/expect/loss/last_ratio_max", fmt::format("at most {}", *expect.loss_last_ratio_max),
        [&](const RunResult& run) { return text(ratio(run)); },
        [&](const RunResult& run) {
          const auto found = ratio(run);
          return found && *found <= *expect.loss_last_ratio_max;
        });
  }
}

/// Checks that a text of the diagnosis equals the expected one.
void check_word(Checker& checker, const char* what, const std::optional<std::string>& expected,
                std::string (*word)(const Diagnosis&)) {
  if (!expected) return;
  const auto found = [&](const RunResult& run) {
    return run.diagnosis ? word(*run.diagnosis) : std::string("none");
  };
  checker.hold(what, *expected, found,
               [&](const RunResult& run) { return found(run) == *expected; });
}

void check_diagnosis(Checker& checker, const ExpectSpec& expect) {
  check_word(checker, "/expect/diagnosis/verdict", expect.diagnosis_verdict,
             [](const Diagnosis& found) { return found.verdict; });
  check_word(checker, "/expect/diagnosis/catalog", expect.diagnosis_catalog,
             [](const Diagnosis& found) { return found.catalog; });
  if (expect.diagnosis_step) {
    checker.hold(
        "/expect/diagnosis/step", fmt::format("{}", *expect.diagnosis_step),
        [](const RunResult& run) {
          return run.diagnosis && run.diagnosis->step ? fmt::format("{}", *run.diagnosis->step)
                                                      : std::string("none");
        },
        [&](const RunResult& run) {
          return run.diagnosis && run.diagnosis->step == *expect.diagnosis_step;
        });
  }
  if (expect.diagnosis_collective) {
    checker.hold(
        "/expect/diagnosis/collective", *expect.diagnosis_collective,
        [](const RunResult& run) {
          return run.diagnosis ? run.diagnosis->collective : std::string("none");
        },
        [&](const RunResult& run) {
          return run.diagnosis &&
                 run.diagnosis->collective.find(*expect.diagnosis_collective) != std::string::npos;
        });
  }
  check_word(checker, "/expect/diagnosis/kind", expect.diagnosis_kind,
             [](const Diagnosis& found) { return std::string(to_string(found.kind)); });
  if (!expect.diagnosis_ranks.empty()) {
    std::vector<int> ranks(expect.diagnosis_ranks.begin(), expect.diagnosis_ranks.end());
    std::sort(ranks.begin(), ranks.end());
    checker.hold(
        "/expect/diagnosis/ranks", rank_list(ranks),
        [](const RunResult& run) {
          return run.diagnosis && !run.diagnosis->ranks.empty() ? rank_list(run.diagnosis->ranks)
                                                                : std::string("none");
        },
        [&](const RunResult& run) { return run.diagnosis && run.diagnosis->ranks == ranks; });
  }
}

ExpectationResult check_equal_hashes(const std::vector<RankReport>& reports) {
  std::map<std::int64_t, std::set<std::string>> hashes_by_step;
  for (const RankReport& report : reports) {
    for (const StepRecord& step : report.steps) {
      if (!step.parameter_hash.empty()) hashes_by_step[step.step].insert(step.parameter_hash);
    }
  }
  ExpectationResult result{"/expect/equal_hashes_on_all_ranks", "one hash a step", "", false};
  if (hashes_by_step.empty()) {
    result.found = "no hash was taken";
    return result;
  }
  for (const auto& [step, hashes] : hashes_by_step) {
    if (hashes.size() == 1) continue;
    result.found = fmt::format("{} hashes after step {}", hashes.size(), step);
    return result;
  }
  result.found = fmt::format("one hash in each of {} steps", hashes_by_step.size());
  result.ok = true;
  return result;
}

ExpectationResult check_repetitions(const std::vector<RunResult>& results) {
  std::map<std::string, int> runs_by_hash;
  for (const RunResult& run : results) ++runs_by_hash[run.parameter_hash.value_or("no hash")];
  ExpectationResult result{"/expect/repeat", fmt::format("{} runs with one hash", results.size()),
                           "", false};
  for (const auto& [hash, runs] : runs_by_hash) {
    if (!result.found.empty()) result.found += ", ";
    result.found += fmt::format("{} with {}", runs, hash);
  }
  result.ok = runs_by_hash.size() == 1 && results.front().parameter_hash.has_value();
  return result;
}

}  // namespace

std::vector<ExpectationResult> check_expectations(const Scenario& scenario,
                                                  const std::vector<RunResult>& results,
                                                  const std::vector<RankReport>& reports) {
  const ExpectSpec& expect = scenario.expect;
  Checker checker(results);
  if (expect.outcome) {
    const auto outcome = [](const RunResult& run) { return std::string(to_string(run.outcome)); };
    checker.hold("/expect/outcome", *expect.outcome, outcome,
                 [&](const RunResult& run) { return outcome(run) == *expect.outcome; });
  }
  if (expect.exit_status) {
    checker.hold(
        "/expect/exit_status", fmt::format("{}", *expect.exit_status),
        [](const RunResult& run) { return fmt::format("{}", run.exit_status()); },
        [&](const RunResult& run) { return run.exit_status() == *expect.exit_status; });
  }
  if (expect.steps_completed) {
    checker.hold(
        "/expect/steps_completed", fmt::format("{}", *expect.steps_completed),
        [](const RunResult& run) { return fmt::format("{}", run.steps_completed); },
        [&](const RunResult& run) { return run.steps_completed == *expect.steps_completed; });
  }
  if (expect.parameter_hash) {
    checker.hold(
        "/expect/parameter_hash", *expect.parameter_hash,
        [](const RunResult& run) { return run.parameter_hash.value_or("none"); },
        [&](const RunResult& run) { return run.parameter_hash == expect.parameter_hash; });
  }
  if (expect.equal_hashes_on_all_ranks) checker.add(check_equal_hashes(reports));
  if (results.size() > 1) checker.add(check_repetitions(results));
  check_loss(checker, expect);
  check_diagnosis(checker, expect);
  return checker.take();
}

bool all_met(const std::vector<ExpectationResult>& expectations) {
  return std::all_of(expectations.begin(), expectations.end(),
                     [](const ExpectationResult& result) { return result.ok; });
}

}  // namespace gradsync
