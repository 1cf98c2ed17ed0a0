#include "tools/command/terminal.hpp"

#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>

namespace gradsync {

Style Style::for_standard_output() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool unwanted = no_color != nullptr && *no_color != '\0';
  const bool incapable = term == nullptr || std::string_view(term) == "dumb";
  return Style(::isatty(STDOUT_FILENO) == 1 && !unwanted && !incapable);
}

std::string Style::paint(std::string_view code, std::string_view text) const {
  return colours_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

}  // namespace gradsync
