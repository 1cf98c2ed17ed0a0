#pragma once

#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace gradsync {

/// The object as one line, with the rank before its own keys; `object` must not be empty.
std::string json_line(int rank, const nlohmann::ordered_json& object);

/// Calls `use` for each line of a JSON Lines file, with the line's location ("steps.jsonl:3") for
/// errors. Throws Error(kUsage) if the file cannot be read or a line is not a JSON object.
void for_each_json_line(
    const std::string& file,
    const std::function<void(const nlohmann::ordered_json& line, const std::string& place)>& use);

}  // namespace gradsync
