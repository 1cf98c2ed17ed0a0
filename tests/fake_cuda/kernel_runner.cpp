#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/fake_cuda/fake_stream.hpp"
#include "tests/fake_cuda/kernel_language.hpp"

namespace gradsync::test {
namespace {

/// The threads of one block, as coroutines of one stream's thread.
class BlockRunner {
 public:
  explicit BlockRunner(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) {
      threads_.push_back(std::make_unique<Thread>());
      threads_.back()->index = i;
    }
  }

  /// Runs `body` in every thread; between two calls of synchronize() each runs as far as it gets.
  void run(const std::function<void()>& body) {
    body_ = &body;
    for (auto& thread : threads_) {
      getcontext(&thread->context);
      thread->context.uc_stack.ss_sp = thread->stack.get();
      thread->context.uc_stack.ss_size = kStackBytes;
      thread->context.uc_link = &scheduler_;
      thread->ended = false;
      makecontext(&thread->context, &BlockRunner::start, 0);
    }
    for (bool running = true; running;) {
      running = false;
      for (auto& thread : threads_) {
        if (thread->ended) continue;
        running = true;
        current_ = thread.get();
        thread_position.x = thread->index;
        swapcontext(&scheduler_, &thread->context);
      }
    }
  }

  void synchronize() {
    has_synchronized_ = true;
    swapcontext(&current_->context, &scheduler_);
  }
  bool has_synchronized() const noexcept { return has_synchronized_; }

  static thread_local BlockRunner* active;

 private:
  static constexpr std::size_t kStackBytes = 128 * 1024;
  struct Thread {
    ucontext_t context{};
    std::unique_ptr<char[]> stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
    unsigned index = 0;
    bool ended = false;
  };

  static void start() {
    BlockRunner& runner = *active;
    (*runner.body_)();
    runner.current_->ended = true;
  }

  std::vector<std::unique_ptr<Thread>> threads_;
  const std::function<void()>* body_ = nullptr;
  Thread* current_ = nullptr;
  ucontext_t scheduler_{};
  bool has_synchronized_ = false;
};

thread_local BlockRunner* BlockRunner::active = nullptr;

/// Kernels that were seen to run without a __syncthreads: their threads need no coroutines.
class PlainKernels {
 public:
  bool contains(const void* kernel) {
    const std::lock_guard lock(mutex_);
    const auto found = plain_.find(kernel);
    return found != plain_.end() && found->second;
  }
  void learn(const void* kernel, bool plain) {
    const std::lock_guard lock(mutex_);
    const auto [entry, is_new] = plain_.try_emplace(kernel, plain);
    entry->second = entry->second && plain;
  }

 private:
  std::mutex mutex_;
  std::map<const void*, bool> plain_;
};

PlainKernels& plain_kernels() {
  static PlainKernels kernels;
  return kernels;
}

template <typename Block>
void for_each_block(dim3 grid, Block block) {
  grid_size = {grid.x, grid.y};
  for (unsigned y = 0; y < grid.y; ++y) {
    for (unsigned x = 0; x < grid.x; ++x) {
      block_position = {x, y};
      block();
    }
  }
}

void run_grid(const void* kernel, dim3 grid, unsigned threads, const std::function<void()>& body) {
  if (plain_kernels().contains(kernel)) {
    return for_each_block(grid, [&] {
      for (unsigned i = 0; i < threads; ++i) {
        thread_position.x = i;
        body();
      }
    });
  }
  BlockRunner runner(threads);
  BlockRunner::active = &runner;
  for_each_block(grid, [&] { runner.run(body); });
  BlockRunner::active = nullptr;
  plain_kernels().learn(kernel, !runner.has_synchronized());
}

}  // namespace

void launch_grid(CudaStream stream, const void* kernel, dim3 grid, unsigned threads,
                 std::function<void()> thread) {
  FakeStream& fake = FakeStream::of(stream);
  fake.count_launch();
  fake.put(
      [kernel, grid, threads, body = std::move(thread)] { run_grid(kernel, grid, threads, body); });
}

void synchronize_block() {
  if (BlockRunner::active == nullptr) {
    std::fputs("a kernel that ran without __syncthreads before has come to one\n", stderr);
    std::abort();
  }
  BlockRunner::active->synchronize();
}

}  // namespace gradsync::test
