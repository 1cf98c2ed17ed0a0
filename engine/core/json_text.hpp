#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace gradsync {

/// JSON from and to text. The library's parser and serializer are templates; compiled here once, they
/// do not cost each file that reads or writes JSON.

/// Throws nlohmann::ordered_json::parse_error, which gives the position, if the text is not JSON.
nlohmann::ordered_json parse_json(std::string_view text);

/// A discarded value (`is_discarded()`) if the text is not JSON.
nlohmann::ordered_json try_parse_json(std::string_view text);

/// On one line if `indent` is negative, else with that many spaces per level. Bytes that are not
/// UTF-8, as in the name of a file, become U+FFFD.
std::string dump_json(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace gradsync
