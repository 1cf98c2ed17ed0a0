#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace gradsync::scenario_table {

/// The candidate closest to `word`, or "" if none is near: smallest edit distance (insert, delete,
/// replace, swap of adjacent characters), at most a third of the longer word. Ignores case, "-" and
/// "_".
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

/// "did you mean \"X\"?", or "" if no candidate is near.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);

/// JSON text of a value, shortened to fit in a message.
std::string shortened(const nlohmann::ordered_json& value);

/// "a", "a and b", "a, b and c".
std::string enumerate(const std::vector<std::string>& words, const std::string& last_separator);

}  // namespace gradsync::scenario_table
