#include "gradsync/simulator/collective/collective.hpp"

#include <cstring>

namespace gradsync {
Collective::Collective(Context context)
    : context_(std::move(context)), operations_(index(context_.ranks)) {}

void Collective::join(OperationPtr operation) {
  const int rank = operation->rank;
  const Tensor& slice = operation->input;
  if (slice.defined() &&
      slice.data() != nullptr) {  // all-gather: this rank's own part of the result
    const auto bytes = static_cast<std::size_t>(slice.nbytes());
    std::memmove(operation->output.data() + index(rank) * bytes, slice.data(), bytes);
  }
  operations_[index(rank)] = std::move(operation);
  on_join(rank);
}

void Collective::complete(int rank) {
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
