#include "gradsync/predict/allreduce_bench.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/tensor/element.hpp"

namespace gradsync {
namespace {

constexpr Bytes kSharedCheckLimit = Bytes{1} << 28;

/// The largest n such that all integers up to n are exact.
double largest_exact(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 2048;
    case DType::kBFloat16:
      return 256;
    case DType::kUInt8:
      return 255;
    default:
      return 16777216;
  }
}

/// Element `index` on `rank` is (rank + index) % modulus, so the sum is periodic in `index` and no
/// partial sum exceeds ranks * (modulus - 1). Returns 0 if the dtype cannot even sum zeros and ones
/// exactly.
int check_modulus(DType dtype, int ranks) {
  const double largest = std::floor(largest_exact(dtype) / ranks);
  return largest < 1 ? 0 : static_cast<int>(std::min(largest + 1, 8.0));
}

class RankBench {
 public:
  RankBench(const AllreduceBench& bench, const RankRuntime& runtime, RankReport& report,
            const std::function<void(std::int64_t)>& before_each)
      : bench_(bench),
        group_(*runtime.process_group),
        device_(*runtime.device),
        report_(report),
        before_each_(before_each) {}

  BenchRow measure(Bytes bytes) {
    BenchRow row;
    row.bytes = bytes;
    row.count = bytes / static_cast<Bytes>(element_size(bench_.dtype));
    row.type = bench_type_name(to_string(bench_.dtype));
    std::vector<double> times = time_iterations(row.count);
    const double mean =
        std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
    std::sort(times.begin(), times.end());
    const std::optional<double> wrong = count_wrong(row.count);
    const auto all = mean_over_ranks({mean, times[times.size() / 2], wrong.value_or(0)});
    row.time = Seconds(all[0]);
    row.median = Seconds(all[1]);
    if (wrong) row.wrong = std::llround(all[2] * group_.size());
    ++report_.steps_completed;
    return row;
  }

 private:
  CollectiveOptions label(const char* what) const {
    CollectiveOptions options;
    options.label.step = report_.steps_completed;
    options.label.phase = Phase::kCheck;
    options.label.what = what;
    return options;
  }

  /// Zeros stay zero however often they are summed.
  std::vector<double> time_iterations(std::int64_t count) {
    Tensor tensor = Tensor::zeros({count}, bench_.dtype, device_);
    const auto once = [&] {
      if (before_each_) before_each_(allreduces_);
      ++allreduces_;
      group_.allreduce(tensor, ReduceOp::kSum, label("benchmark"))->wait();
    };
    for (std::int64_t k = 0; k < bench_.warmup; ++k) once();
    group_.barrier(label("before timing"))->wait();
    // Use stamps: on a GPU the host finishes long before the network.
    const auto iterations = static_cast<std::size_t>(bench_.iterations);
    std::vector<Seconds> stamps(iterations + 1);
    group_.clock().stamp(stamps[0]);
    for (std::size_t k = 0; k < iterations; ++k) {
      once();
      group_.clock().stamp(stamps[k + 1]);
    }
    group_.clock().settle_stamps();
    std::vector<double> times;
    for (std::size_t k = 0; k < iterations; ++k) {
      times.push_back((stamps[k + 1] - stamps[k]).count());
    }
    return times;
  }

  std::optional<double> count_wrong(std::int64_t count) {
    const int modulus = check_modulus(bench_.dtype, group_.size());
    const Bytes bytes = count * static_cast<Bytes>(element_size(bench_.dtype));
    const bool fits = !is_simulated() || bytes <= kSharedCheckLimit / group_.size();
    if (!bench_.check || modulus == 0 || !fits) return std::nullopt;
    return with_element_type(bench_.dtype, [&](auto element) {
      return count_wrong_as<decltype(element)>(count, modulus);
    });
  }

  template <typename T>
  double count_wrong_as(std::int64_t count, int modulus) {
    using Math = MathType<T>;
    std::vector<T> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<T>(static_cast<Math>(value_of(group_.rank(), i, modulus)));
    }
    Tensor tensor = Tensor::empty({count}, bench_.dtype, memory());
    memory().copy_from_host(tensor, std::as_bytes(std::span(values)));
    group_.allreduce(tensor, ReduceOp::kSum, label("check"))->wait();
    memory().copy_to_host(std::as_writable_bytes(std::span(values)), tensor);

    std::vector<Math> expected;
    for (int i = 0; i < modulus; ++i) {
      int sum = 0;
      for (int r = 0; r < group_.size(); ++r)
        sum += value_of(r, static_cast<std::size_t>(i), modulus);
      expected.push_back(static_cast<Math>(sum));
    }
    double wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto period = static_cast<std::size_t>(modulus);
      wrong += static_cast<Math>(values[i]) == expected[i % period] ? 0 : 1;
    }
    return wrong;
  }

  static int value_of(int rank, std::size_t index, int modulus) {
    return static_cast<int>((static_cast<std::size_t>(rank) + index) %
                            static_cast<std::size_t>(modulus));
  }

  std::vector<double> mean_over_ranks(const std::vector<double>& values) {
    const auto width = static_cast<std::int64_t>(values.size());
    Tensor mine = Tensor::empty({width}, DType::kFloat64, memory());
    memory().copy_from_host(mine, std::as_bytes(std::span(values)));
    Tensor all = Tensor::empty({group_.size(), width}, DType::kFloat64, memory());
    group_.allgather(all, mine, label("times"))->wait();
    std::vector<double> gathered(values.size() * static_cast<std::size_t>(group_.size()));
    memory().copy_to_host(std::as_writable_bytes(std::span(gathered)), all);
    std::vector<double> mean(values.size(), 0.0);
    for (std::size_t i = 0; i < gathered.size(); ++i) {
      mean[i % values.size()] += gathered[i] / group_.size();
    }
    return mean;
  }

  bool is_simulated() const { return device_.type() == DeviceType::kMeta; }
  /// A device with data.
  Device& memory() const { return is_simulated() ? cpu_device() : device_; }

  const AllreduceBench& bench_;
  ProcessGroup& group_;
  Device& device_;
  RankReport& report_;
  const std::function<void(std::int64_t)>& before_each_;
  std::int64_t allreduces_ = 0;
};

}  // namespace

std::vector<Bytes> bench_sizes(const AllreduceBench& bench) {
  if (!bench.sizes.empty()) return bench.sizes;
  if (bench.factor <= 1) throw Error(ErrorCode::kUsage, "the factor between sizes must exceed 1");
  if (bench.min_bytes > bench.max_bytes) {
    throw Error(ErrorCode::kUsage, "the smallest size exceeds the largest");
  }
  const auto element = static_cast<Bytes>(element_size(bench.dtype));
  std::vector<Bytes> sizes;
  for (double bytes = static_cast<double>(bench.min_bytes);
       bytes <= static_cast<double>(bench.max_bytes); bytes *= bench.factor) {
    const Bytes whole = std::max<Bytes>(1, static_cast<Bytes>(bytes) / element) * element;
    if (sizes.empty() || sizes.back() != whole) sizes.push_back(whole);
  }
  return sizes;
}

void run_allreduce_bench(const AllreduceBench& bench, const RankRuntime& runtime,
                         RankReport& report, const std::function<void(const BenchRow&)>& on_row,
                         const std::function<void(std::int64_t)>& before_each) {
  if (bench.iterations < 1) throw Error(ErrorCode::kUsage, "at least one iteration is needed");
  report.rank = runtime.process_group->rank();
  report.world_size = runtime.process_group->size();
  runtime.process_group->set_detail(false);  // NCCL ranks then make no extra comparison
  RankBench rank(bench, runtime, report, before_each);
  for (const Bytes bytes : bench_sizes(bench)) {
    const BenchRow row = rank.measure(bytes);
    if (report.rank == 0 && on_row) on_row(row);
  }
  report.state = RankState::kFinished;
  runtime.process_group->shutdown();
}

nlohmann::ordered_json to_json(const AllreduceBench& bench) {
  return {{"min_bytes", bench.min_bytes},   {"max_bytes", bench.max_bytes},
          {"factor", bench.factor},         {"warmup", bench.warmup},
          {"iterations", bench.iterations}, {"dtype", to_string(bench.dtype)},
          {"check", bench.check},           {"sizes", bench.sizes}};
}

AllreduceBench allreduce_bench_from_json(const nlohmann::ordered_json& json) {
  AllreduceBench bench;
  bench.min_bytes = json.at("min_bytes");
  bench.max_bytes = json.at("max_bytes");
  bench.factor = json.at("factor");
  bench.warmup = json.at("warmup");
  bench.iterations = json.at("iterations");
  bench.dtype = parse_dtype(json.at("dtype").get<std::string>());
  bench.check = json.at("check");
  bench.sizes = json.at("sizes").get<std::vector<Bytes>>();
  return bench;
}

}  // namespace gradsync
