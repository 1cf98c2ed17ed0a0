// NCCL's tuning constants as data. Source: src/graph/tuning.cc (latencies, limits, corrections) and
// src/graph/search.cc (speeds, channels) of NCCL v2.30.7-1; the Volta, Ampere and Hopper rows are
// the same from 2.23 on, the Blackwell row is that of 2.30.

#include "gradsync/simulator/plan/nccl_constants.hpp"

namespace gradsync::nccl {
namespace {

//                         base                nvlink             pci               network
constexpr Latencies kTree{{6.8, 14.0, 8.4}, {0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14.0}};
constexpr Latencies kRing{{6.6, 14.0, 8.4}, {0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14.0}};
constexpr Latencies kNvls{{0, 0, 0}, {0, 0, 25.0}, {0, 0, 0}, {0, 0, 18.0}};
constexpr Latencies kNvlsTree{{0, 0, 0}, {0, 0, 25.0}, {0, 0, 0}, {0, 0, 20.9}};

constexpr Limits kVolta{
    {39.0, 39.0, 20.4}, {20, 20, 20}, {20, 20, 20}, {26.5, 18.5, 10.0}, {0, 0, 0}, 0, 6, 0, 1.9};
constexpr Limits kAmpere{
    {87.7, 22.5, 19.0}, {20, 20, 20}, {20, 20, 20}, {24.0, 23.6, 17.8}, {0, 0, 0}, 0, 12, 0, 1.4};
constexpr Limits kHopper{{141.0, 45.0, 35.0},
                         {36.7, 36.7, 36.7},
                         {36.7, 36.7, 29.0},
                         {38.7, 41.4, 36.0},
                         {0, 57.7, 45.5},
                         0.85,
                         12,
                         8,
                         1.4};
constexpr Limits kBlackwell{{282.0, 90.0, 70.0},
                            {40, 40, 40},
                            {55.6, 31.67, 20.0},
                            {70.0, 42.8, 24.0},
                            {0, 96.0, 80},
                            0.74,
                            12,
                            8,
                            1.4};

constexpr PerNodes kIntelLl{39.0, 39.0, 20.4};
constexpr PerNodes kAmdLl{87.7, 22.5, 19.0};

constexpr std::array<double, kTreeCorrections> kTreeLl{
    1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1};
constexpr std::array<double, kTreeCorrections> kTreeLl128{
    1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1};
constexpr std::array<double, kTreeCorrections> kTreeSimple{
    .9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9};

}  // namespace

const char* to_string(Algorithm algorithm) noexcept {
  switch (algorithm) {
    case Algorithm::kTree:
      return "tree";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kNvls:
      return "nvls";
    case Algorithm::kNvlsTree:
      return "nvls_tree";
  }
  return "?";
}

const char* to_string(Protocol protocol) noexcept {
  switch (protocol) {
    case Protocol::kLl:
      return "ll";
    case Protocol::kLl128:
      return "ll128";
    case Protocol::kSimple:
      return "simple";
  }
  return "?";
}

const Latencies& latencies(Algorithm algorithm) noexcept {
  switch (algorithm) {
    case Algorithm::kTree:
      return kTree;
    case Algorithm::kRing:
      return kRing;
    case Algorithm::kNvls:
      return kNvls;
    case Algorithm::kNvlsTree:
      break;
  }
  return kNvlsTree;
}

const Limits& limits(ClusterSpec::Generation generation) noexcept {
  switch (generation) {
    case ClusterSpec::Generation::kVolta:
      return kVolta;
    case ClusterSpec::Generation::kAmpere:
      return kAmpere;
    case ClusterSpec::Generation::kHopper:
      return kHopper;
    case ClusterSpec::Generation::kBlackwell:
      break;
  }
  return kBlackwell;
}

const PerNodes& ll_max_between_nodes(ClusterSpec::CpuVendor vendor) noexcept {
  return vendor == ClusterSpec::CpuVendor::kAmd ? kAmdLl : kIntelLl;
}

const std::array<double, kTreeCorrections>& tree_correction(Protocol protocol) noexcept {
  switch (protocol) {
    case Protocol::kLl:
      return kTreeLl;
    case Protocol::kLl128:
      return kTreeLl128;
    case Protocol::kSimple:
      break;
  }
  return kTreeSimple;
}

std::array<double, 19> network_speeds(ClusterSpec::Generation generation) noexcept {
  if (generation >= ClusterSpec::Generation::kHopper) {
    return {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12, 0, 0};
  }
  return {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12};
}

}  // namespace gradsync::nccl
