#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// One placement (in-place or out-of-place) of one row of a benchmark's log.
struct LoggedTime {
  Seconds time{0};
  std::optional<Seconds> median;      ///< over iterations, if the log has it
  std::optional<double> algbw;        ///< GB/s, as printed
  std::optional<double> busbw;        ///< GB/s, as printed
  std::optional<std::int64_t> wrong;  ///< absent: not checked
};

/// One row of the log, of any collective.
struct LoggedRow {
  std::string place;  ///< in the file: "line 12", "/results/3"
  Bytes bytes = 0;
  std::int64_t count = 0;
  std::string type;
  std::string redop;        ///< "sum", "none"; empty: not given
  std::optional<int> root;  ///< -1: the collective has none
  std::optional<LoggedTime> out_of_place;
  std::optional<LoggedTime> in_place;
};

/// A line of the device list.
struct LoggedDevice {
  int rank = 0;
  int group = 0;
  std::int64_t process = -1;  ///< -1: not given
  std::string host;
  std::string name;  ///< "NVIDIA H100 80GB HBM3"
};

/// One run of a benchmark program, as described by its log.
struct LoggedRun {
  std::string program;        ///< "nccl-tests", "gradsync bench allreduce on gloo"
  std::string test;           ///< "all_reduce_perf", if the log names it
  std::optional<int> ranks;   ///< if the log states it
  int ranks_per_process = 1;  ///< nThread * nGpus
  std::vector<LoggedDevice> devices;
  std::vector<LoggedRow> rows;
  std::vector<std::string> cut_off;  ///< places of incomplete rows
};

}  // namespace gradsync
