#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace gradsync {

/// Splits a stream into whole lines, so that the output of several ranks can be interleaved.
class LineSplitter {
 public:
  explicit LineSplitter(std::function<void(const std::string& line)> on_line)
      : on_line_(std::move(on_line)) {}

  void add(std::string_view bytes);
  /// Emits the remainder after the last newline.
  void finish();

 private:
  /// A longer line (a progress bar that never ends its line) is emitted in pieces.
  static constexpr std::size_t kMaxLine = 64 * 1024;

  std::function<void(const std::string&)> on_line_;
  std::string partial_;
};

}  // namespace gradsync
