#include <nlohmann/json.hpp>

#include "gradsync/testbed/diagnosis/diagnosis.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json to_json(const Divergence& divergence) {
  Json rows = Json::array();
  for (const SequenceRow& row : divergence.rows) {
    rows.push_back({{"ranks", row.ranks},
                    {"sequence", or_null(row.sequence)},
                    {"collective", row.collective}});
  }
  return {{"group", divergence.group},
          {"last_agreed", or_null(divergence.last_agreed)},
          {"rows", std::move(rows)}};
}

Json to_json(const Reproduction& reproduction) {
  return {{"scenario_hash", reproduction.scenario_hash},
          {"seeds", reproduction.seeds},
          {"command", reproduction.command},
          {"stop_step", or_null(reproduction.stop_step)}};
}

}  // namespace

Json to_json(const Diagnosis& diagnosis) {
  Json table = Json::array();
  for (const DiagnosisRow& row : diagnosis.table) {
    table.push_back({
        {"ranks", row.ranks},
        {"state", row.state},
        {"phase", text_or_null(row.phase)},
        {"steps_completed", or_null(row.steps_completed)},
        {"last_completed", text_or_null(row.last_completed)},
        {"blocked_in", text_or_null(row.blocked_in)},
        {"detail", text_or_null(row.detail)},
        {"since", row.since ? Json(row.since->count()) : Json()},
        {"exit_code", or_null(row.exit_code)},
        {"waits_for", row.waits_for},
        {"next_expected", text_or_null(row.next_expected)},
    });
  }
  return {
      {"verdict", diagnosis.verdict},
      {"confidence", diagnosis.confidence},
      {"kind", to_string(diagnosis.kind)},
      {"catalog", text_or_null(diagnosis.catalog)},
      {"ranks", diagnosis.ranks},
      {"step", or_null(diagnosis.step)},
      {"bucket", or_null(diagnosis.bucket)},
      {"collective", text_or_null(diagnosis.collective)},
      {"because", diagnosis.because},
      {"fix", diagnosis.fix},
      {"first_cause", diagnosis.first_cause},
      {"first_symptom", diagnosis.first_symptom},
      {"chain", diagnosis.chain},
      {"consequences", diagnosis.consequences},
      {"notes", diagnosis.notes},
      {"ruled_out", diagnosis.ruled_out},
      {"divergence", diagnosis.divergence ? to_json(*diagnosis.divergence) : Json()},
      {"reproduce", to_json(diagnosis.reproduction)},
      {"table", std::move(table)},
  };
}

}  // namespace gradsync
