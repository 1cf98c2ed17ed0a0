#include "gradsync/core/json_text.hpp"

#include <nlohmann/json.hpp>

namespace gradsync {

using Json = nlohmann::ordered_json;

Json parse_json(std::string_view text) {
  return Json::parse(text);
}

Json try_parse_json(std::string_view text) {
  return Json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
}

std::string dump_json(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace gradsync
