#pragma once

#include <array>
#include <vector>

namespace gradsync::cube_mesh {

/// The NVLinks of a DGX-1 with eight V100: each GPU has six, one or two to each of four others
/// (NVIDIA DGX-1 with Tesla V100 white paper, figure 5; same as `nvidia-smi topo -m`).
inline constexpr int kGpus = 8;

/// Number of NVLinks between two GPUs: 0, 1 or 2.
int links(int a, int b) noexcept;

/// The intermediate GPUs of a message: none between connected GPUs, otherwise a common neighbor.
std::vector<int> way(int from, int to);

/// Three rings over all eight GPUs that together use every NVLink once; each is used in both
/// directions.
const std::array<std::array<int, kGpus>, 3>& rings() noexcept;

}  // namespace gradsync::cube_mesh
