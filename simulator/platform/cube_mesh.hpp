#pragma once

#include <array>
#include <vector>

namespace gradsync::cube_mesh {

/// The NVLinks of a DGX-1 with eight V100: each GPU has six, one or two to each of four others
/// (NVIDIA DGX-1 with Tesla V100 white paper, figure 5; `nvidia-smi topo -m` shows the same).
inline constexpr int kGpus = 8;

/// NVLinks between two GPUs: 0, 1 or 2.
int links(int a, int b) noexcept;

/// The GPUs by way of which a message goes: none between GPUs that are joined, else a common
/// neighbour.
std::vector<int> way(int from, int to);

/// Three ways round all eight GPUs that together use every NVLink once; each is run in both
/// directions.
const std::array<std::array<int, kGpus>, 3>& rings() noexcept;

}  // namespace gradsync::cube_mesh
