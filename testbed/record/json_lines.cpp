#include "gradsync/testbed/record/json_lines.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/testbed/record/files.hpp"

namespace gradsync {

std::string json_line(int rank, const nlohmann::ordered_json& object) {
  // Inserts the rank as text, because an ordered_json searches its keys linearly.
  return fmt::format("{{\"rank\":{},{}\n", rank, dump_json(object).substr(1));
}

void for_each_json_line(
    const std::string& file,
    const std::function<void(const nlohmann::ordered_json& line, const std::string& place)>& use) {
  using Json = nlohmann::ordered_json;
  const std::string text = read_file(file);
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string place = fmt::format("{}:{}", file, ++number);
    const Json line = try_parse_json(std::string_view(text).substr(begin, end - begin));
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
