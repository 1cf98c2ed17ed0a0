#include <nlohmann/json.hpp>

#include "engine/diagnosis/diagnosis.hpp"

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
    });
  }
  return {
      {"verdict", diagnosis.verdict},
      {"kind", diagnosis.kind},
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
      {"table", std::move(table)},
  };
}

}  // namespace gradsync
