#include "gradsync/testbed/diagnosis/sentences.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>

#include <fmt/format.h>

namespace gradsync::diagnosis {

std::string describe_collective(const CollectiveRecord& record) {
  std::string text = fmt::format("{} #{}", to_string(record.op), record.sequence);
  if (record.op != OpType::kBarrier) {
    text += fmt::format(" of {} {} elements", record.elements, to_string(record.dtype));
  }
  return text + ", " + describe(record.label);
}

std::string with_parameters(const CollectiveRecord& record) {
  if (record.parameters == nullptr || record.parameters->empty()) return {};
  constexpr std::size_t kShown = 2;
  const std::vector<std::string>& names = *record.parameters;
  if (names.size() == 1) return " with parameter " + names.front();
  std::string text = " with parameters ";
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) {
    if (i > 0) text += names.size() == kShown ? " and " : ", ";
    text += names[i];
  }
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

bool is_of_ddp(const CollectiveRecord& record) {
  constexpr std::array<std::string_view, 10> kOwn = {
      "gradients",      "used parameters", "rebuilt bucket indices", "rebuilt bucket sizes",
      "parameter hash", "parameter count", "parameter shapes",       "parameters",
      "buffers",        "devices"};
  return std::find(kOwn.begin(), kOwn.end(), record.label.what) != kOwn.end();
}

std::string own_site_of(const CollectiveRecord& record) {
  const bool own = !is_of_ddp(record) && !record.label.site.empty();
  return own ? " at " + record.label.site : std::string();
}

const char* verb(std::span<const int> ranks, const char* one, const char* many) {
  return ranks.size() == 1 ? one : many;
}

std::string count_of(std::int64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string describe_signal(int signal) {
  // strsignal depends on the locale, but a message must be the same everywhere.
  const char* name = nullptr;
  switch (signal) {
    case SIGABRT:
      name = "SIGABRT";
      break;
    case SIGBUS:
      name = "SIGBUS";
      break;
    case SIGFPE:
      name = "SIGFPE";
      break;
    case SIGILL:
      name = "SIGILL";
      break;
    case SIGINT:
      name = "SIGINT";
      break;
    case SIGKILL:
      name = "SIGKILL";
      break;
    case SIGPIPE:
      name = "SIGPIPE";
      break;
    case SIGSEGV:
      name = "SIGSEGV";
      break;
    case SIGTERM:
      name = "SIGTERM";
      break;
    default:
      return fmt::format("signal {}", signal);
  }
  return fmt::format("signal {} ({})", signal, name);
}

}  // namespace gradsync::diagnosis
