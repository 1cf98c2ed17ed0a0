#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace gradsync {

/// Cuts a stream into whole lines, so that the ranks' output can be mixed without cutting words.
class LineSplitter {
 public:
  explicit LineSplitter(std::function<void(const std::string& line)> on_line)
      : on_line_(std::move(on_line)) {}

  void add(std::string_view bytes);
  /// Hands out what came after the last line's end.
  void finish();

 private:
  /// A line longer than this (a progress bar that never ends its line) is handed out in pieces.
  static constexpr std::size_t kMaxLine = 64 * 1024;

  std::function<void(const std::string&)> on_line_;
  std::string partial_;
};

}  // namespace gradsync
