// The example's process group, over files, against the contract that every backend's is held to.
#include <atomic>
#include <exception>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "examples/own_process_group/file_process_group.hpp"
#include "gradsync/core/wall_clock.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/process_group_conformance.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

/// Ranks as threads, each with a group of its own in one folder.
World world_of_files(const TemporaryDirectory& directory) {
  return [&directory](int size, const RankFunction& function) {
    static std::atomic<int> worlds = 0;
    const std::filesystem::path folder = directory.path() / std::to_string(worlds++);
    std::filesystem::create_directory(folder);
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          WallClock clock;
          FileProcessGroup group(folder, rank, size, clock);
          function(group);
          group.shutdown();
        } catch (...) {
          errors[static_cast<std::size_t>(rank)] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::filesystem::remove_all(folder);
    for (const std::exception_ptr& error : errors) {
      if (error) std::rethrow_exception(error);
    }
  };
}

}  // namespace

TEST_CASE("a process group over files meets the contract of process groups") {
  const TemporaryDirectory directory;
  check_process_group_conformance(world_of_files(directory));
}

TEST_CASE("different collectives are desyncs over files") {
  const TemporaryDirectory directory;
  check_mismatches_are_desyncs(world_of_files(directory));
}
