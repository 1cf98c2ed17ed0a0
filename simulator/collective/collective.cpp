#include "gradsync/simulator/collective/collective.hpp"

#include <cstring>
#include <numeric>

namespace gradsync {
namespace {

/// Copies the part of the result that is this rank's own.
void take_own_part(Operation& operation) {
  const Tensor& input = operation.input;
  if (!input.defined() || input.data() == nullptr) return;
  const auto rank = static_cast<std::size_t>(operation.rank);
  if (operation.record.op == OpType::kAllgather) {
    const auto bytes = static_cast<std::size_t>(input.nbytes());
    std::memmove(operation.output.data() + rank * bytes, input.data(), bytes);
  }
  if (operation.record.op != OpType::kAlltoall) return;
  const std::vector<std::int64_t>& in = operation.record.splits->input;
  const std::vector<std::int64_t>& out = operation.record.splits->output;
  const std::size_t width = element_size(input.dtype());
  const auto before = [&](const std::vector<std::int64_t>& sizes) {
    const auto end = sizes.begin() + operation.rank;
    return width * static_cast<std::size_t>(std::accumulate(sizes.begin(), end, std::int64_t{0}));
  };
  const std::size_t bytes = width * static_cast<std::size_t>(in[rank]);
  if (bytes == 0) return;
  std::memcpy(operation.output.data() + before(out), input.data() + before(in), bytes);
}

}  // namespace

Collective::Collective(Context context)
    : context_(std::move(context)), operations_(index(context_.ranks)) {}

void Collective::join(OperationPtr operation) {
  const int rank = operation->rank;
  take_own_part(*operation);
  operations_[index(rank)] = std::move(operation);
  on_join(rank);
}

void Collective::complete(int rank) {
  if (operation(rank).take_result) operation(rank).take_result();
  context_.completed(operation(rank));
}

void Collective::send(int from, int to, Bytes bytes, std::function<void()> arrived) {
  // The message keeps its collective alive.
  network().send(from, to, bytes, {std::move(arrived), shared_from_this()});
}

void Collective::transfer(int from, int to, double bytes, std::function<void()> left) {
  network().transfer(from, to, bytes, {std::move(left), shared_from_this()});
}

void Collective::after(Seconds delay, std::function<void()> event) {
  network().after(delay, {std::move(event), shared_from_this()});
}

}  // namespace gradsync
