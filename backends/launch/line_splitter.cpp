#include "gradsync/backends/launch/line_splitter.hpp"

namespace gradsync {

void LineSplitter::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    partial_ += bytes.substr(0, end);
    if (end != std::string_view::npos || partial_.size() >= kMaxLine) {
      on_line_(partial_);
      partial_.clear();
    }
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
  }
}

void LineSplitter::finish() {
  if (partial_.empty()) return;
  on_line_(partial_);
  partial_.clear();
}

}  // namespace gradsync
