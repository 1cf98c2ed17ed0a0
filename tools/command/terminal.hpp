#pragma once

#include <string>
#include <string_view>

namespace gradsync {

/// Styles for human-readable text. Plain unless standard output is a terminal that supports colors;
/// respects NO_COLOR (no-color.org) and TERM=dumb.
class Style {
 public:
  static Style for_standard_output();
  static Style plain() { return Style(false); }

  std::string bold(std::string_view text) const { return paint("1", text); }
  std::string dim(std::string_view text) const { return paint("2", text); }
  std::string good(std::string_view text) const { return paint("32", text); }
  std::string bad(std::string_view text) const { return paint("1;31", text); }

 private:
  explicit Style(bool colours) : colours_(colours) {}
  std::string paint(std::string_view code, std::string_view text) const;

  bool colours_;
};

}  // namespace gradsync
