#include <algorithm>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/diagnosis.hpp"

namespace gradsync {
namespace {

constexpr std::size_t kWidth = 100;

/// Breaks `text` at spaces so that no line exceeds kWidth (a longer word gets its own line); all
/// lines but the first are indented by `indent`.
std::string wrap(const std::string& text, std::size_t indent) {
  std::string lines;
  std::size_t column = indent;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::size_t length = end - begin;
    if (column > indent && column + 1 + length > kWidth) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      lines += ' ';
      ++column;
    }
    lines.append(text, begin, length);
    column += length;
    begin = end + 1;
  }
  return lines + "\n";
}

std::string entry(const char* name, const std::string& text) {
  constexpr std::size_t kIndent = 11;
  return text.empty() ? std::string() : fmt::format("  {:<8} {}", name, wrap(text, kIndent));
}

std::string headline(const Diagnosis& diagnosis) {
  std::string text = fmt::format("{}: {}", diagnosis.verdict, to_string(diagnosis.kind));
  if (!diagnosis.catalog.empty()) text += fmt::format(" ({})", diagnosis.catalog);
  if (!diagnosis.ranks.empty()) text += ", " + rank_list(diagnosis.ranks);
  if (diagnosis.step) text += fmt::format(", step {}", *diagnosis.step);
  if (diagnosis.bucket) text += fmt::format(", bucket {}", *diagnosis.bucket);
  text += fmt::format(" [{}]", diagnosis.confidence);
  return text + "\n";
}

std::string format_table(const std::vector<DiagnosisRow>& table) {
  std::size_t width = 5;
  for (const DiagnosisRow& row : table) width = std::max(width, rank_numbers(row.ranks).size());
  width = std::min<std::size_t>(width, 24);
  std::string text = fmt::format("  {:<{}}  {:<9}  {:<9}  {:>5}  {:>12}\n", "ranks", width, "state",
                                 "phase", "steps", "since");
  for (const DiagnosisRow& row : table) {
    const std::string steps = row.steps_completed ? fmt::format("{}", *row.steps_completed) : "-";
    const std::string since = row.since ? fmt::format("{:.6f} s", row.since->count()) : "-";
    text += fmt::format("  {:<{}}  {:<9}  {:<9}  {:>5}  {:>12}\n", rank_numbers(row.ranks), width,
                        row.state, row.phase, steps, since);
    const auto below = [&](const char* name, const std::string& what) {
      constexpr std::size_t kIndent = 13;
      if (!what.empty()) text += fmt::format("    {:<8} {}", name, wrap(what, kIndent));
    };
    below("in", row.blocked_in);
    if (!row.waits_for.empty()) below("for", rank_list(row.waits_for));
    below("after", row.last_completed);
    below("missing", row.next_expected);
    below(row.state == "died" ? "by" : "error", row.detail);
    if (row.exit_code && row.state != "died") below("exit", fmt::format("{}", *row.exit_code));
  }
  return text;
}

std::string format_divergence(const Divergence& divergence) {
  std::string text =
      fmt::format("\n  {} of {}\n",
                  divergence.last_agreed
                      ? fmt::format("the ranks part after collective #{}", *divergence.last_agreed)
                      : "the ranks part at the first collective",
                  divergence.group);
  std::size_t width = 0;
  for (const SequenceRow& row : divergence.rows)
    width = std::max(width, rank_numbers(row.ranks).size());
  width = std::min<std::size_t>(width, 24);
  for (const SequenceRow& row : divergence.rows) {
    const std::string ranks = fmt::format("  {:<{}}  ", rank_numbers(row.ranks), width);
    text += ranks + wrap(row.collective, ranks.size());
  }
  return text;
}

std::string format_reproduction(const Reproduction& reproduction) {
  std::string text = reproduction.command;
  if (reproduction.stop_step)
    text += fmt::format(", goes wrong in step {}", *reproduction.stop_step);
  return text + fmt::format(" (scenario {}, {})", reproduction.scenario_hash, reproduction.seeds);
}

}  // namespace

std::string format_text(const Diagnosis& diagnosis) {
  std::string text = headline(diagnosis);
  text += entry("because", diagnosis.because);
  text += entry("cause", diagnosis.first_cause == diagnosis.because ? "" : diagnosis.first_cause);
  text +=
      entry("symptom", diagnosis.first_symptom == diagnosis.because ? "" : diagnosis.first_symptom);
  for (const std::string& link : diagnosis.chain) text += entry("chain", link);
  text += entry("fix", diagnosis.fix);
  for (const std::string& consequence : diagnosis.consequences) text += entry("then", consequence);
  for (const std::string& note : diagnosis.notes) text += entry("note", note);
  for (const std::string& cause : diagnosis.ruled_out) text += entry("excluded", cause);
  text += entry("repeat", format_reproduction(diagnosis.reproduction));
  if (diagnosis.divergence) text += format_divergence(*diagnosis.divergence);
  return text + "\n" + format_table(diagnosis.table);
}

}  // namespace gradsync
