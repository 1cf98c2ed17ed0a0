#pragma once

#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace gradsync {

/// The object as a line, with the rank before its own keys; `object` must not be empty.
std::string json_line(int rank, const nlohmann::ordered_json& object);

/// Calls `use` for each line of a file of JSON lines, with the line's place ("steps.jsonl:3") for
/// errors. Throws Error(kUsage) for a file that cannot be read or a line that is no JSON object.
void for_each_json_line(
    const std::string& file,
    const std::function<void(const nlohmann::ordered_json& line, const std::string& place)>& use);

}  // namespace gradsync
