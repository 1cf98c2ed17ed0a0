#include "gradsync/simulator/platform/cube_mesh.hpp"

#include <cstddef>

namespace gradsync::cube_mesh {
namespace {

constexpr std::array<std::array<int, kGpus>, kGpus> kLinks{{{0, 1, 1, 2, 2, 0, 0, 0},
                                                            {1, 0, 2, 1, 0, 2, 0, 0},
                                                            {1, 2, 0, 2, 0, 0, 1, 0},
                                                            {2, 1, 2, 0, 0, 0, 0, 1},
                                                            {2, 0, 0, 0, 0, 1, 1, 2},
                                                            {0, 2, 0, 0, 1, 0, 2, 1},
                                                            {0, 0, 1, 0, 1, 2, 0, 2},
                                                            {0, 0, 0, 1, 2, 1, 2, 0}}};

constexpr std::array<std::array<int, kGpus>, 3> kRings{
    {{0, 1, 2, 3, 7, 6, 5, 4}, {0, 3, 2, 1, 5, 6, 7, 4}, {0, 3, 1, 5, 7, 4, 6, 2}}};

}  // namespace

int links(int a, int b) noexcept {
  return kLinks[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
}

std::vector<int> way(int from, int to) {
  if (links(from, to) > 0) return {};
  for (int via = 0; via < kGpus; ++via) {
    if (links(from, via) > 0 && links(via, to) > 0) return {via};
  }
  return {};
}

const std::array<std::array<int, kGpus>, 3>& rings() noexcept {
  return kRings;
}

}  // namespace gradsync::cube_mesh
