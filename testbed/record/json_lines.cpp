#include "gradsync/testbed/record/json_lines.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/testbed/record/files.hpp"

namespace gradsync {

std::string json_line(int rank, const nlohmann::ordered_json& object) {
  // Inserts the rank as text, because an ordered_json searches its keys linearly.
  return fmt::format("{{\"rank\":{},{}\n", rank, object.dump().substr(1));
}

void for_each_json_line(
    const std::string& file,
    const std::function<void(const nlohmann::ordered_json& line, const std::string& place)>& use) {
  using Json = nlohmann::ordered_json;
  const std::string text = read_file(file);
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const auto at = [&](std::size_t position) {
      return text.begin() + static_cast<std::ptrdiff_t>(position);
    };
    const std::string place = fmt::format("{}:{}", file, ++number);
    const Json line = Json::parse(at(begin), at(end), nullptr, /*allow_exceptions=*/false);
    if (!line.is_object()) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("{}: expected a line of JSON, found \"{}\"", place,
                              text.substr(begin, std::min<std::size_t>(end - begin, 40))));
    }
    use(line, place);
    begin = end + 1;
  }
}

}  // namespace gradsync
