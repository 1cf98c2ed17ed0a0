#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace gradsync {

/// Non-fatal problems that a user of DDP should know. Each is reported once.
class Warnings {
 public:
  void once(const std::string& text) {
    if (std::ranges::find(texts_, text) == texts_.end()) texts_.push_back(text);
  }
  const std::vector<std::string>& texts() const noexcept { return texts_; }

 private:
  std::vector<std::string> texts_;
};

}  // namespace gradsync
