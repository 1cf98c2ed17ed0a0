#include "gradsync/predict/collective_bench.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "gradsync/core/error.hpp"
#include "gradsync/tensor/element.hpp"

namespace gradsync {
namespace {

constexpr Bytes kSharedCheckLimit = Bytes{1} << 28;
/// Values are whole numbers below this; their sums have to be exact in the dtype.
constexpr int kModulus = 4;

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

bool gathers_parts(BenchOp op) {
  return op == BenchOp::kAllgather || op == BenchOp::kReduceScatter || op == BenchOp::kAlltoall;
}

int value_of(int rank, std::int64_t index) {
  return static_cast<int>((rank + index) % kModulus);
}

/// One rank's tensors of one size, and the call.
class Exercise {
 public:
  Exercise(const CollectiveBench& bench, ProcessGroup& group, Device& device, std::int64_t count,
           bool in_place)
      : bench_(bench), group_(group), count_(count) {
    const std::int64_t whole = gathers_parts(bench.op) ? count * group.size() : count;
    const DType dtype = bench.options.dtype;
    const auto part = [&](const Tensor& of) { return of.slice(group.rank() * count, {count}); };
    switch (bench.op) {
      case BenchOp::kAllgather:
        output_ = Tensor::zeros({whole}, dtype, device);
        input_ = in_place ? part(output_) : Tensor::zeros({count}, dtype, device);
        break;
      case BenchOp::kReduceScatter:
        input_ = Tensor::zeros({whole}, dtype, device);
        output_ = in_place ? part(input_) : Tensor::zeros({count}, dtype, device);
        break;
      case BenchOp::kAlltoall:
      case BenchOp::kSendrecv:
        input_ = Tensor::zeros({whole}, dtype, device);
        output_ = Tensor::zeros({whole}, dtype, device);
        break;
      default:
        input_ = Tensor::zeros({whole}, dtype, device);
        output_ = input_;
    }
  }

  Tensor& input() { return input_; }
  const Tensor& output() const { return output_; }

  void run(const CollectiveOptions& options) {
    switch (bench_.op) {
      case BenchOp::kBroadcast:
        return group_.broadcast(input_, bench_.root, options)->wait();
      case BenchOp::kReduce:
        return group_.reduce(input_, bench_.root, ReduceOp::kSum, options)->wait();
      case BenchOp::kAllgather:
        return group_.allgather(output_, input_, options)->wait();
      case BenchOp::kReduceScatter:
        return group_.reduce_scatter(output_, input_, ReduceOp::kSum, options)->wait();
      case BenchOp::kAlltoall:
        return group_.alltoall(output_, input_, options)->wait();
      case BenchOp::kSendrecv:
        return exchange(options);
    }
  }

  /// What element `index` of the output has to be.
  int expected(std::int64_t index) const {
    const int rank = group_.rank(), n = group_.size();
    const auto sum = [&](std::int64_t at) {
      int total = 0;
      for (int r = 0; r < n; ++r) total += value_of(r, at);
      return total;
    };
    switch (bench_.op) {
      case BenchOp::kBroadcast:
        return value_of(bench_.root, index);
      case BenchOp::kReduce:
        return rank == bench_.root ? sum(index) : value_of(rank, index);
      case BenchOp::kAllgather:
        return value_of(static_cast<int>(index / count_), index % count_);
      case BenchOp::kReduceScatter:
        return sum(rank * count_ + index);
      case BenchOp::kAlltoall:
        return value_of(static_cast<int>(index / count_), rank * count_ + index % count_);
      case BenchOp::kSendrecv:
        return value_of((rank + n - 1) % n, index);
    }
    return 0;
  }

 private:
  /// To the next rank and from the previous one, as sendrecv_perf.
  void exchange(const CollectiveOptions& options) {
    const int rank = group_.rank(), n = group_.size();
    const int next = (rank + 1) % n, previous = (rank + n - 1) % n;
    if (bench_.grouped) {
      std::vector<std::int64_t> in(static_cast<std::size_t>(n)), out(in.size());
      in[static_cast<std::size_t>(next)] = count_;
      out[static_cast<std::size_t>(previous)] = count_;
      return group_.alltoall(output_, input_, out, in, options)->wait();
    }
    const WorkPtr sent = group_.send(input_, next, options);
    group_.recv(output_, previous, options)->wait();
    sent->wait();
  }

  const CollectiveBench& bench_;
  ProcessGroup& group_;
  std::int64_t count_;
  Tensor input_;
  Tensor output_;
};

class RankBench {
 public:
  RankBench(const CollectiveBench& bench, const RankRuntime& runtime, RankReport& report,
            const std::function<void(std::int64_t)>& before_each)
      : bench_(bench),
        group_(*runtime.process_group),
        device_(*runtime.device),
        report_(report),
        before_each_(before_each) {}

  CollectiveRow measure(Bytes bytes) {
    const auto element = static_cast<Bytes>(element_size(bench_.options.dtype));
    const std::int64_t parts = gathers_parts(bench_.op) ? group_.size() : 1;
    CollectiveRow row;
    row.count = std::max<std::int64_t>(1, bytes / element / parts);
    row.bytes = row.count * parts * element;
    row.type = bench_type_name(to_string(bench_.options.dtype));
    const bool both = bench_.op == BenchOp::kAllgather || bench_.op == BenchOp::kReduceScatter;
    const bool only_in_place = bench_.op == BenchOp::kBroadcast || bench_.op == BenchOp::kReduce;
    if (!only_in_place) row.out_of_place = time(row.count, false);
    if (both || only_in_place) row.in_place = time(row.count, true);
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

  BenchTiming time(std::int64_t count, bool in_place) {
    std::vector<double> times = time_iterations(count, in_place);
    const double mean =
        std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
    std::sort(times.begin(), times.end());
    const std::optional<double> wrong = count_wrong(count, in_place);
    const auto all = mean_over_ranks({mean, times[times.size() / 2], wrong.value_or(0)});
    BenchTiming timing;
    timing.time = Seconds(all[0]);
    timing.median = Seconds(all[1]);
    if (wrong) timing.wrong = std::llround(all[2] * group_.size());
    return timing;
  }

  std::vector<double> time_iterations(std::int64_t count, bool in_place) {
    Exercise exercise(bench_, group_, device_, count, in_place);
    const auto once = [&] {
      if (before_each_) before_each_(calls_);
      ++calls_;
      exercise.run(label("benchmark"));
    };
    for (std::int64_t k = 0; k < bench_.options.warmup; ++k) once();
    group_.barrier(label("before timing"))->wait();
    // Use stamps: on a GPU the host finishes long before the network.
    const auto iterations = static_cast<std::size_t>(bench_.options.iterations);
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

  std::optional<double> count_wrong(std::int64_t count, bool in_place) {
    const DType dtype = bench_.options.dtype;
    const std::int64_t parts = gathers_parts(bench_.op) ? group_.size() : 1;
    const Bytes bytes = count * parts * static_cast<Bytes>(element_size(dtype));
    const bool fits = !is_simulated() || bytes <= kSharedCheckLimit / group_.size();
    const bool exact = group_.size() * (kModulus - 1) <= largest_exact(dtype);
    if (!bench_.options.check || !exact || !fits) return std::nullopt;
    return with_element_type(
        dtype, [&](auto element) { return count_wrong_as<decltype(element)>(count, in_place); });
  }

  template <typename T>
  double count_wrong_as(std::int64_t count, bool in_place) {
    using Math = MathType<T>;
    Exercise exercise(bench_, group_, memory(), count, in_place);
    std::vector<T> values(static_cast<std::size_t>(exercise.input().numel()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] =
          static_cast<T>(static_cast<Math>(value_of(group_.rank(), static_cast<std::int64_t>(i))));
    }
    memory().copy_from_host(exercise.input(), std::as_bytes(std::span(values)));
    exercise.run(label("check"));
    values.resize(static_cast<std::size_t>(exercise.output().numel()));
    memory().copy_to_host(std::as_writable_bytes(std::span(values)), exercise.output());
    double wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto expected = static_cast<Math>(exercise.expected(static_cast<std::int64_t>(i)));
      wrong += static_cast<Math>(values[i]) == expected ? 0 : 1;
    }
    return wrong;
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

  const CollectiveBench& bench_;
  ProcessGroup& group_;
  Device& device_;
  RankReport& report_;
  const std::function<void(std::int64_t)>& before_each_;
  std::int64_t calls_ = 0;
};

}  // namespace

void run_collective_bench(const CollectiveBench& bench, const RankRuntime& runtime,
                          RankReport& report,
                          const std::function<void(const CollectiveRow&)>& on_row,
                          const std::function<void(std::int64_t)>& before_each) {
  ProcessGroup& group = *runtime.process_group;
  if (bench.options.iterations < 1) {
    throw Error(ErrorCode::kUsage, "at least one iteration is needed");
  }
  if (bench.op == BenchOp::kSendrecv && group.size() < 2) {
    throw Error(ErrorCode::kUsage, "sendrecv needs two ranks or more: add --ranks 2");
  }
  report.rank = group.rank();
  report.world_size = group.size();
  group.set_detail(false);  // NCCL ranks then make no extra comparison
  RankBench rank(bench, runtime, report, before_each);
  for (const Bytes bytes : bench_sizes(bench.options)) {
    const CollectiveRow row = rank.measure(bytes);
    if (report.rank == 0 && on_row) on_row(row);
  }
  report.state = RankState::kFinished;
  group.shutdown();
}

}  // namespace gradsync
