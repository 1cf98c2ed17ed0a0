// DistributedDataParallel around an autograd that is not the engine's: a program that computes its
// gradients itself, in memory of its own. Here: the line through points, by least squares.
//
//     gradsync launch --nproc-per-node 2 -- ./own_autograd
#include <iostream>
#include <vector>

#include <gradsync/autograd/parameter_hash.hpp>
#include <gradsync/backends/gloo/run_on_gloo.hpp>
#include <gradsync/ddp/comm_hooks.hpp>
#include <gradsync/ddp/distributed_data_parallel.hpp>
#include <gradsync/optim/sgd.hpp>

using namespace gradsync;

namespace {

// [memory]
/// The program's own numbers. DDP and the optimizer work in this memory; nothing is copied.
struct Line {
  std::vector<float> slope{0}, offset{0};
  std::vector<float> slope_gradient{0}, offset_gradient{0};
};

Tensor view_of(std::vector<float>& numbers) {
  return Tensor::from_blob(numbers.data(), {std::ssize(numbers)}, DType::kFloat32, cpu_device());
}
// [/memory]

// [loop]
void fit(ProcessGroup& group) {
  Line line;  // outlives every tensor over it
  const auto slope = std::make_shared<Parameter>("slope", view_of(line.slope));
  const auto offset = std::make_shared<Parameter>("offset", view_of(line.offset));
  slope->grad = view_of(line.slope_gradient);
  offset->grad = view_of(line.offset_gradient);

  DistributedDataParallel ddp({slope, offset}, /*buffers=*/{}, group);
  ddp.register_comm_hook(allreduce_hook());  // or fp16_compress_hook(), or one of the program's own
  Sgd optimizer({slope, offset}, {.lr = 0.2});
  const float x = static_cast<float>(group.rank() + 1), y = 3 * x - 1;  // this rank's point
  for (std::int64_t step = 0; step < 1000; ++step) {
    ddp.set_position(/*epoch=*/0, step);
    ddp.prepare_for_forward();
    const float error = line.slope[0] * x + line.offset[0] - y;  // the program's forward
    ddp.prepare_for_backward();
    line.offset_gradient[0] = 2 * error;  // its backward, last parameter first
    ddp.mark_gradient_ready(1);           // what is sent travels while the rest is computed
    line.slope_gradient[0] = 2 * error * x;
    ddp.mark_gradient_ready(0);
    ddp.finalize_backward();  // both gradients are now the means over all ranks
    optimizer.step();
  }
  if (group.rank() != 0) return;
  std::cout << "y = " << line.slope[0] << " x + " << line.offset[0] << ", parameter hash "
            << hash_parameters(std::vector{slope, offset})->hex() << std::endl;
}
// [/loop]

}  // namespace

int main() {
  try {
    run_on_gloo([](ProcessGroup& group, Clock&) { fit(group); });
  } catch (const Error& error) {
    // [errors]
    // what() is a sentence; code() says of what kind the error is.
    std::cerr << "own_autograd: " << error.what() << '\n';
    return error.code() == ErrorCode::kPeerFailed ? 2 : 1;  // 2: a consequence of another rank's
    // [/errors]
  }
}
