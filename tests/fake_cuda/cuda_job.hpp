#pragma once

#include <array>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "gradsync/backends/cuda/cuda_clock.hpp"
#include "gradsync/backends/nccl/nccl_process_group.hpp"
#include "gradsync/backends/store/tcp_store_server.hpp"
#include "tests/fake_cuda/fake_cuda.hpp"
#include "tests/fake_cuda/fake_nccl.hpp"

namespace gradsync::test {

/// One rank of a test: a GPU and an NCCL of its own, both stand-ins.
struct CudaRank {
  explicit CudaRank(FakeNcclNetwork& network, int number) : cuda(number), nccl(network) {}

  FakeCuda cuda;
  FakeNccl nccl;
  FakeCublas products;
  // For as long as the rank's function runs.
  CudaDevice* device = nullptr;
  Clock* clock = nullptr;
  NcclProcessGroup* group = nullptr;

  FakeStream& compute_stream() { return cuda.stream(0); }
  FakeStream& communication_stream() { return cuda.stream(1); }
};

/// Ranks of one job as threads, over a store on 127.0.0.1.
class CudaJob {
 public:
  explicit CudaJob(int size) : size_(size) {
    for (int rank = 0; rank < size; ++rank) {
      ranks_.push_back(std::make_unique<CudaRank>(network_, rank));
    }
    options.watch_interval = Seconds(0.005);
  }

  NcclProcessGroup::Options options;
  CudaDevice::Options device_options;
  std::string job_id = "job";  ///< another one, for a job after one that failed

  CudaRank& rank(int number) { return *ranks_[static_cast<std::size_t>(number)]; }
  int size() const noexcept { return size_; }

  /// Runs the function on each of `ranks`, with a group that is not shut down afterwards. Returns
  /// each one's exception (null for none).
  std::vector<std::exception_ptr> run_on(const std::vector<int>& ranks,
                                         const std::function<void(CudaRank&)>& function) {
    std::vector<std::exception_ptr> errors(ranks.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          run_rank_thread(ranks[i], function);
        } catch (...) {
          errors[i] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
  }

  /// On all ranks, with shutdown; rethrows the first rank's exception.
  void run(const std::function<void(CudaRank&)>& function) {
    std::vector<int> all;
    for (int r = 0; r < size_; ++r) all.push_back(r);
    for (const auto& error : run_on(all, [&](CudaRank& rank) {
           function(rank);
           rank.group->shutdown();
         })) {
      if (error) std::rethrow_exception(error);
    }
  }

  RankEnvironment environment(int number) const {
    RankEnvironment e;
    e.rank = number;
    e.world_size = size_;
    e.local_rank = number;
    e.local_world_size = size_;
    e.master_port = server_.port();
    e.agent_store = true;
    e.job_id = job_id;
    return e;
  }

 private:
  void run_rank_thread(int number, const std::function<void(CudaRank&)>& function) {
    CudaRank& rank = this->rank(number);
    const RankEnvironment env = environment(number);
    const JobStore job = connect_job_store(env, options.timeout);
    CudaDevice device(rank.cuda, rank.products, 0, device_options);
    CudaClock clock(device, WallClock::TimePoint(std::chrono::steady_clock::now()));
    NcclProcessGroup group(env, job, device, rank.nccl, clock, options);
    rank.device = &device;
    rank.clock = &clock;
    rank.group = &group;
    function(rank);
  }

  int size_;
  TcpStoreServer server_{{.bind_address = "127.0.0.1", .port = 0}};
  FakeNcclNetwork network_;
  std::vector<std::unique_ptr<CudaRank>> ranks_;
};

/// A tensor on the rank's device with these values.
template <typename T>
Tensor on_device(CudaRank& rank, const std::vector<T>& values) {
  const Tensor host = Tensor::from<T>(values, {static_cast<std::int64_t>(values.size())});
  Tensor tensor = Tensor::empty(host.shape(), host.dtype(), *rank.device);
  rank.device->copy_from_host(tensor, {host.data(), static_cast<std::size_t>(host.nbytes())});
  return tensor;
}

template <typename T>
std::vector<T> values_of(const Tensor& tensor) {
  std::vector<T> values(static_cast<std::size_t>(tensor.numel()));
  tensor.device().copy_to_host(std::as_writable_bytes(std::span(values)), tensor);
  return values;
}

inline CollectiveOptions labelled(std::int64_t step, const std::string& what = "test") {
  CollectiveOptions options;
  options.label.epoch = 0;
  options.label.step = step;
  options.label.phase = Phase::kBackward;
  options.label.what = what;
  return options;
}

}  // namespace gradsync::test
