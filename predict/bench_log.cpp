#include "gradsync/predict/bench_log.hpp"

#include <algorithm>
#include <regex>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool is_number(const std::string& word) {
  static const std::regex pattern(R"([-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?)");
  return std::regex_match(word, pattern);
}

bool is_whole(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// size count type redop [root] (time algbw busbw wrong) once or twice. Versions before 2.12 had no
/// root.
class TextRow {
 public:
  TextRow(const std::string& line, const std::string& name, int number)
      : words_(words_of(line)), name_(name), number_(number) {}

  bool is_row() const {
    return words_.size() >= 8 && is_whole(words_[0]) && is_whole(words_[1]) &&
           !is_number(words_[2]);
  }

  BenchRow read() const {
    constexpr std::size_t kHead = 4;  // size count type redop
    const std::size_t rest = words_.size() - kHead;
    std::size_t group = kHead;
    if (rest == 9 || rest == 5) {
      group = kHead + 1;
    } else if (rest != 8 && rest != 4) {
      fail("the columns size count type redop [root], then time algbw busbw #wrong once or twice");
    }
    // A placement that was not measured says N/A; then the other is all there is.
    if (!is_number(words_[group]) && words_.size() >= group + 8) group += 4;
    BenchRow row;
    row.bytes = std::stoll(words_[0]);
    row.count = std::stoll(words_[1]);
    row.type = words_[2];
    if (!is_number(words_[group])) fail("a time in microseconds");
    row.time = Seconds(std::stod(words_[group]) * 1e-6);
    if (is_whole(words_[group + 3])) row.wrong = std::stoll(words_[group + 3]);
    return row;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    std::string found;
    for (const std::string& word : words_) found += (found.empty() ? "" : " ") + word;
    throw ConfigError({name_, fmt::format("line {}", number_), expected, found, ""});
  }

  std::vector<std::string> words_;
  const std::string& name_;
  int number_;
};

BenchTable read_text(const std::string& text, const std::string& name) {
  static const std::regex rank_line(R"(^#\s+Rank\s+([0-9]+)\s.*)");
  static const std::regex our_heading(R"(^# (gradsync .*), ([0-9]+) ranks$)");
  BenchTable table;
  table.program = "nccl-tests";
  std::istringstream stream(text);
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    std::smatch match;
    if (std::regex_match(line, match, rank_line)) {
      table.ranks = std::max(table.ranks, std::stoi(match[1]) + 1);
    } else if (std::regex_match(line, match, our_heading)) {
      table.program = match[1];
      table.ranks = std::stoi(match[2]);
    } else if (!line.starts_with("#")) {
      const TextRow row(line, name, number);
      if (row.is_row()) table.rows.push_back(row.read());
    }
  }
  return table;
}

BenchRow read_json_row(const Json& result, const std::string& name, const std::string& pointer) {
  const char* placement = result.contains("out_of_place") ? "out_of_place" : "in_place";
  try {
    const Json& measured = result.at(placement);
    BenchRow row;
    row.bytes = result.at("size");
    row.count = result.at("count");
    row.type = result.at("type");
    row.time = Seconds(measured.at("time").get<double>() * 1e-6);
    const Json wrong = measured.value("nwrong", Json());
    if (wrong.is_number()) row.wrong = wrong.get<std::int64_t>();
    const std::string iterations = std::string(placement) + "_per_iter";
    if (result.contains(iterations)) {
      row.median = Seconds(result.at(iterations).at("p50_us").get<double>() * 1e-6);
    }
    return row;
  } catch (const Json::exception&) {
    throw ConfigError({name, pointer, "size, count, type and in_place or out_of_place {time}",
                       result.dump().substr(0, 80), ""});
  }
}

BenchTable read_json(const Json& json, const std::string& name) {
  BenchTable table;
  table.program = json.value("program", "nccl-tests");
  if (!json.contains("results") || !json.at("results").is_array()) {
    throw ConfigError({name, "/results", "an array, as nccl-tests -J writes it", "nothing", ""});
  }
  const Json config = json.value("config", Json::object());
  if (config.contains("ranks")) table.ranks = config.at("ranks");
  if (config.contains("devices")) table.ranks = static_cast<int>(config.at("devices").size());
  const Json& results = json.at("results");
  for (std::size_t i = 0; i < results.size(); ++i) {
    table.rows.push_back(read_json_row(results[i], name, fmt::format("/results/{}", i)));
  }
  return table;
}

}  // namespace

BenchTable read_bench_log(const std::string& text, const std::string& name,
                          std::optional<int> ranks) {
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool looks_like_json = first != std::string::npos && text[first] == '{';
  BenchTable table;
  if (looks_like_json) {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) {
      throw ConfigError({name, "", "the JSON of nccl-tests -J or of gradsync bench --json",
                         "text that is not JSON", ""});
    }
    table = read_json(json, name);
  } else {
    table = read_text(text, name);
  }
  if (table.rows.empty()) {
    throw ConfigError(
        {name, "", "a table of nccl-tests or of gradsync bench", "no row of one", ""});
  }
  if (ranks) table.ranks = *ranks;
  if (table.ranks < 2) {
    throw Error(ErrorCode::kUsage,
                name +
                    " does not say between how many ranks (two at the least) it was measured; "
                    "say it with --ranks");
  }
  return table;
}

}  // namespace gradsync
