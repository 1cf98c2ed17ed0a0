#include "gradsync/predict/bench_log_json.hpp"

#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

/// nccl-tests writes some numbers as text: "    -1", "nan".
std::optional<double> number(const Json& object, const char* key) {
  if (!object.contains(key)) return std::nullopt;
  const Json& value = object.at(key);
  if (value.is_number()) return value.get<double>();
  return std::nullopt;
}

std::string text(const Json& object, const char* key) {
  return object.contains(key) && object.at(key).is_string() ? object.at(key).get<std::string>()
                                                            : "";
}

/// An integer between `least` and `most`, or `otherwise`.
std::int64_t whole(const Json& object, const char* key, std::int64_t least, std::int64_t most,
                   std::int64_t otherwise) {
  const auto value = number(object, key);
  const bool fits =
      value && *value >= static_cast<double>(least) && *value <= static_cast<double>(most);
  return fits ? static_cast<std::int64_t>(*value) : otherwise;
}

constexpr std::int64_t kMostRanks = 1 << 20;
constexpr std::int64_t kMostRanksPerProcess = 1024;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;

std::optional<int> root_of(const Json& result) {
  if (const auto root = number(result, "root")) {
    return static_cast<int>(whole(result, "root", -1, kMostRanks, -1));
  }
  const std::string word = text(result, "root");
  if (word.find_first_of("0123456789") == std::string::npos) return std::nullopt;
  return std::atoi(word.c_str());
}

std::optional<LoggedTime> time_of(const Json& result, const std::string& placement) {
  if (!result.contains(placement) || !result.at(placement).is_object()) return std::nullopt;
  const Json& measured = result.at(placement);
  const auto time =
      measured.contains("time") ? number(measured, "time") : number(measured, "cpu_time");
  if (!time) return std::nullopt;
  LoggedTime logged;
  logged.time = Seconds(*time * 1e-6);
  logged.algbw = number(measured, "alg_bw");
  logged.busbw = number(measured, "bus_bw");
  const auto wrong = number(measured, "nwrong");
  if (wrong && *wrong >= 0 && *wrong < 1e15) logged.wrong = static_cast<std::int64_t>(*wrong);
  const std::string iterations = placement + "_per_iter";
  if (result.contains(iterations) && result.at(iterations).is_object()) {
    const auto median = number(result.at(iterations), "p50_us");
    if (median) logged.median = Seconds(*median * 1e-6);
  }
  return logged;
}

class JsonReader {
 public:
  explicit JsonReader(const std::string& name) : name_(name) {}

  LoggedRun read(const std::string& content) {
    const Json json = parse(content);
    run_.program = text(json, "program");
    if (run_.program.empty()) run_.program = "nccl-tests";
    if (json.contains("args") && json.at("args").is_array() && !json.at("args").empty() &&
        json.at("args")[0].is_string()) {
      const std::string program = json.at("args")[0].get<std::string>();
      run_.test = program.substr(program.find_last_of('/') + 1);
    }
    const Json config = json.value("config", Json::object());
    if (!config.is_object()) fail("/config", "an object", config);
    read_config(config);
    if (!json.contains("results") || !json.at("results").is_array()) {
      throw ConfigError({name_, "/results", "an array, as nccl-tests -J writes it", "nothing", ""});
    }
    const Json& results = json.at("results");
    for (std::size_t i = 0; i < results.size(); ++i) {
      read_row(results[i], fmt::format("/results/{}", i));
    }
    return run_;
  }

 private:
  [[noreturn]] void fail(const std::string& pointer, const char* expected, const Json& found) {
    throw ConfigError(
        {name_, pointer, expected, std::string("a value of type ") + found.type_name(), ""});
  }

  /// A killed job leaves its file unterminated; then the complete results and the config are used.
  Json parse(const std::string& content) {
    Json results = Json::array(), config = Json::object();
    const auto keep = [&](int, Json::parse_event_t event, Json& parsed) {
      if (event == Json::parse_event_t::object_end && parsed.is_object()) {
        if (parsed.contains("size") && parsed.contains("count")) results.push_back(parsed);
        if (parsed.contains("devices")) config = parsed;
      }
      return true;
    };
    const Json json = Json::parse(content, keep, false);
    if (json.is_object()) return json;
    if (results.empty()) {
      throw ConfigError({name_, "", "the JSON of nccl-tests -J or of gradsync bench --json",
                         "text that is not JSON", ""});
    }
    run_.cut_off.push_back("the end of the file");
    return {{"config", config}, {"results", results}};
  }

  void read_config(const Json& config) {
    const std::int64_t ranks = whole(config, "ranks", 1, kMostRanks, 0);
    if (ranks > 0) run_.ranks = static_cast<int>(ranks);
    const std::int64_t each = whole(config, "nthreads", 1, kMostRanksPerProcess, 1) *
                              whole(config, "ngpus", 1, kMostRanksPerProcess, 1);
    if (each <= kMostRanksPerProcess) run_.ranks_per_process = static_cast<int>(each);
    const Json devices = config.value("devices", Json::array());
    if (!devices.is_array()) fail("/config/devices", "an array", devices);
    std::set<std::pair<std::string, std::int64_t>> processes;
    for (const Json& entry : devices) {
      if (!entry.is_object()) fail("/config/devices", "an array of objects", entry);
      LoggedDevice device;
      device.rank = static_cast<int>(whole(entry, "rank", 0, kMostRanks, 0));
      device.group = static_cast<int>(whole(entry, "group", -1, kMostRanks, 0));
      device.process = whole(entry, "pid", 0, kMostBytes, -1);
      device.host = text(entry, "hostname");
      device.name = text(entry, "device_info");
      processes.insert({device.host, device.process});
      run_.devices.push_back(device);
    }
    // nccl-tests' JSON names only the first device of each process, its text all of them.
    if (processes.size() == run_.devices.size()) complete_processes();
  }

  void complete_processes() {
    std::vector<LoggedDevice> all;
    for (const LoggedDevice& first : run_.devices) {
      for (int i = 0; i < run_.ranks_per_process; ++i) {
        all.push_back(first);
        all.back().rank += i;
      }
    }
    run_.devices = std::move(all);
  }

  void read_row(const Json& result, const std::string& pointer) {
    LoggedRow row;
    row.place = pointer;
    constexpr const char* kExpected = "size, count, type and in_place or out_of_place {time}";
    if (!result.is_object()) fail(pointer, kExpected, result);
    row.bytes = whole(result, "size", 0, kMostBytes, -1);
    row.count = whole(result, "count", 0, kMostBytes, -1);
    if (row.bytes < 0 || row.count < 0) fail(pointer, kExpected, result);
    row.type = text(result, "type");
    row.redop = text(result, "redop");
    row.root = root_of(result);
    row.out_of_place = time_of(result, "out_of_place");
    row.in_place = time_of(result, "in_place");
    if (!row.out_of_place && !row.in_place) fail(pointer, kExpected, result);
    run_.rows.push_back(row);
  }

  std::string name_;
  LoggedRun run_;
};

}  // namespace

LoggedRun read_log_json(const std::string& text, const std::string& name) {
  return JsonReader(name).read(text);
}

}  // namespace gradsync
