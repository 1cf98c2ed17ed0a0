#pragma once

#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "gradsync/backends/gloo/gloo_process_group.hpp"
#include "gradsync/core/wall_clock.hpp"
#include "tests/support/process_group_conformance.hpp"

namespace gradsync::test {

/// Ranks of one job as threads of this process, each with its own connections, over 127.0.0.1.
class GlooJob {
 public:
  explicit GlooJob(int size) : size_(size) {}

  RankEnvironment environment(int rank) const {
    RankEnvironment e;
    e.rank = rank;
    e.world_size = size_;
    e.local_rank = rank;
    e.local_world_size = size_;
    e.master_port = server_.port();
    e.agent_store = true;
    return e;
  }

  GlooProcessGroup::Options options;

  /// Runs the function on each rank of `ranks`, with a group that is not shut down afterwards.
  /// Returns each one's exception (null for none).
  std::vector<std::exception_ptr> run(const std::vector<int>& ranks,
                                      const std::function<void(GlooProcessGroup&)>& function) {
    std::vector<std::exception_ptr> errors(ranks.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          const RankEnvironment env = environment(ranks[i]);
          const JobStore job = connect_job_store(env, options.timeout);
          WallClock clock;
          GlooProcessGroup group(env, job, clock, options);
          function(group);
        } catch (...) {
          errors[i] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
  }

 private:
  int size_;
  TcpStoreServer server_{{.bind_address = "127.0.0.1", .port = 0}};
};

inline std::vector<int> ranks_below(int size) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(rank);
  return ranks;
}

/// The world for the conformance suite.
inline World gloo_world(GlooProcessGroup::Options options) {
  return [options](int size, const RankFunction& function) {
    GlooJob job(size);
    job.options = options;
    const auto errors = job.run(ranks_below(size), [&](GlooProcessGroup& group) {
      function(group);
      group.shutdown();
    });
    for (const auto& error : errors) {
      if (error) std::rethrow_exception(error);
    }
  };
}

}  // namespace gradsync::test
