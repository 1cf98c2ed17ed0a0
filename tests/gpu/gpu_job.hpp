#pragma once

#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <thread>
#include <vector>

#include "gradsync/backends/cuda/cuda_clock.hpp"
#include "gradsync/backends/cuda/runtime/cuda_runtime.hpp"
#include "gradsync/backends/nccl/nccl_process_group.hpp"
#include "gradsync/backends/nccl/runtime/nccl_library.hpp"
#include "gradsync/backends/store/tcp_store_server.hpp"

namespace gradsync::test {

/// Says, in the words that CTest counts as skipped, that this machine has fewer GPUs.
inline bool skipped_without_gpus(int wanted) {
  const int there = make_cuda_runtime()->device_count();
  if (there >= wanted) return false;
  std::cout << "SKIPPED: needs " << wanted << " GPU(s), this machine shows " << there << std::endl;
  return true;
}

/// One rank of a test on a real GPU.
struct GpuRank {
  CudaDevice& device;
  Clock& clock;
  NcclProcessGroup& group;
};

/// Ranks as threads of this process, a GPU each, over a store on 127.0.0.1.
class GpuJob {
 public:
  explicit GpuJob(int size) : size_(size) {}

  NcclProcessGroup::Options options;
  std::string job_id = "job";

  /// Runs the function on every rank, without shutdown. Returns each one's exception.
  std::vector<std::exception_ptr> run_all(const std::function<void(GpuRank&)>& function) {
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size_));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          run_rank_thread(rank, function);
        } catch (...) {
          errors[static_cast<std::size_t>(rank)] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
  }

  /// With shutdown; rethrows the first rank's exception.
  void run(const std::function<void(GpuRank&)>& function) {
    for (const auto& error : run_all([&](GpuRank& rank) {
           function(rank);
           rank.group.shutdown();
         })) {
      if (error) std::rethrow_exception(error);
    }
  }

 private:
  void run_rank_thread(int number, const std::function<void(GpuRank&)>& function) {
    RankEnvironment env;
    env.rank = env.local_rank = number;
    env.world_size = env.local_world_size = size_;
    env.master_port = server_.port();
    env.agent_store = true;
    env.job_id = job_id;
    const JobStore job = connect_job_store(env, options.timeout);
    const auto nccl = open_nccl();
    const auto cuda = make_cuda_runtime();
    cuda->set_device(number);
    const auto products = open_cublas();
    CudaDevice device(*cuda, *products, number, {});
    CudaClock clock(device, WallClock::TimePoint(std::chrono::steady_clock::now()));
    NcclProcessGroup group(env, job, device, *nccl, clock, options);
    GpuRank rank{device, clock, group};
    function(rank);
  }

  int size_;
  TcpStoreServer server_{{.bind_address = "127.0.0.1", .port = 0}};
};

}  // namespace gradsync::test
