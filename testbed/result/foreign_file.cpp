#include "gradsync/testbed/result/foreign_file.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/json_text.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

/// A pickle starts with the PROTO opcode and the protocol version; the words are keys of the dump.
std::optional<std::string> describe_pickle(std::string_view content) {
  constexpr char kProto = '\x80';
  if (content.size() < 2 || content[0] != kProto || content[1] > 5) return std::nullopt;
  const bool is_dump = content.find("pg_config") != std::string_view::npos &&
                       content.find("entries") != std::string_view::npos;
  return is_dump ? "a Flight Recorder dump of PyTorch (a Python pickle)" : "a Python pickle";
}

std::optional<std::string> describe_log(std::string_view content) {
  constexpr std::array<std::pair<std::string_view, const char*>, 4> kWords{
      {{"Watchdog caught collective operation timeout", "a log of PyTorch's NCCL watchdog"},
       {"ProcessGroupNCCL", "a log of PyTorch's NCCL process group"},
       {"NCCL INFO", "a log of NCCL"},
       {"Traceback (most recent call last)", "a log of a Python program"}}};
  for (const auto& [words, what] : kWords) {
    if (content.find(words) != std::string_view::npos) return what;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> describe_foreign_file(std::string_view content) {
  if (auto pickle = describe_pickle(content)) return pickle;
  const Json json = try_parse_json(content);
  if (json.is_discarded()) {
    const bool ours = content.find("report_version") != std::string_view::npos;
    return ours ? std::nullopt : describe_log(content);
  }
  if (!json.is_object() || json.contains("report_version")) return std::nullopt;
  if (json.contains("entries") && (json.contains("pg_config") || json.contains("pg_status"))) {
    const auto version = json.find("version");
    return version != json.end() && version->is_string()
               ? fmt::format("a Flight Recorder dump of PyTorch (version {})",
                             version->get<std::string>())
               : std::string("a Flight Recorder dump of PyTorch");
  }
  if (json.contains("traceEvents")) {
    return json.contains("distributedInfo") || json.contains("deviceProperties")
               ? "a trace of PyTorch's profiler"
               : "a trace in Chrome's format";
  }
  if (json.contains("outcome") && json.contains("world_size")) {
    return "the result.json of a run: give its directory";
  }
  return std::nullopt;
}

}  // namespace gradsync
