#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace gradsync {

/// Things that a user of DDP should know and that stop nothing. Each is said once.
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
