#include "gradsync/ddp/replica_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "gradsync/core/error.hpp"
#include "gradsync/ddp/control_tensor.hpp"

namespace gradsync {
namespace {

constexpr std::size_t kLineBytes = 512;  // size of an exchanged line; longer lines are cut

/// The collectives of the check; each one is waited for at once.
class Exchange {
 public:
  Exchange(ProcessGroup& group, Device& device, const LoopPosition& position)
      : group_(group), device_(device), position_(position) {}

  std::vector<std::int64_t> allgather(std::int64_t value, const char* what) {
    const Tensor input = control_tensor<std::int64_t>({value}, DType::kInt64, device_);
    const Tensor output = Tensor::empty({group_.size(), 1}, DType::kInt64, device_);
    group_.allgather(output, input, position_.options(Phase::kInit, what))->wait();
    return control_values<std::int64_t>(output);
  }

  template <typename T>
  std::vector<T> broadcast(const std::vector<T>& values, DType dtype, int root, const char* what) {
    const Tensor tensor = control_tensor(values, dtype, device_);
    group_.broadcast(tensor, root, position_.options(Phase::kInit, what))->wait();
    return control_values<T>(tensor);
  }

  std::string broadcast_text(const std::string& text, std::size_t size, int root,
                             const char* what) {
    std::vector<std::uint8_t> bytes(text.begin(), text.end());
    bytes.resize(size);
    bytes = broadcast(bytes, DType::kUInt8, root, what);
    const auto end = std::ranges::find(bytes, std::uint8_t{0});
    return {bytes.begin(), end};
  }

  int rank() const { return group_.rank(); }

 private:
  ProcessGroup& group_;
  Device& device_;
  const LoopPosition& position_;
};

std::int64_t fingerprint(std::size_t count, const std::string& text) {
  const std::uint64_t hash =
      XXH3_64bits(text.data(), text.size()) >> 33;  // 31 bits, so that it stays positive
  return static_cast<std::int64_t>((hash << 32) | (count & 0xffffffffu));
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// All ranks know that some rank differs. Finds the first such rank and the first line that
/// differs.
[[noreturn]] void report_difference(Exchange& exchange, const std::vector<std::string>& mine,
                                    const std::string& text) {
  const auto size =
      exchange.broadcast<std::int64_t>({static_cast<std::int64_t>(text.size())}, DType::kInt64, 0,
                                       "length of rank 0's model description");
  const std::vector<std::string> rank0 = split_lines(exchange.broadcast_text(
      text, static_cast<std::size_t>(size.front()), 0, "rank 0's model description"));

  const auto [my_line, rank0_line] = std::ranges::mismatch(mine, rank0);
  const bool differs = my_line != mine.end() || rank0_line != rank0.end();
  const std::int64_t first_line = differs ? my_line - mine.begin() : -1;
  const auto lines = exchange.allgather(first_line, "first difference to rank 0's model");

  const auto culprit = std::ranges::find_if(lines, [](std::int64_t line) { return line >= 0; });
  if (culprit == lines.end()) {
    throw Error(ErrorCode::kInternal,
                fmt::format("rank {}: fingerprints of the model differ between ranks, but not "
                            "what they were taken of",
                            exchange.rank()));
  }
  const int root = static_cast<int>(culprit - lines.begin());
  const auto line_of =
      [index = static_cast<std::size_t>(*culprit)](const std::vector<std::string>& description) {
        return index < description.size() ? description[index].substr(0, kLineBytes)
                                          : std::string("nothing more");
      };
  const std::string theirs = exchange.broadcast_text(line_of(mine), kLineBytes, root,
                                                     "first difference to rank 0's model");
  throw Error(
      ErrorCode::kDesync,
      fmt::format("rank {}: DDP expects the same model across all ranks, but rank {} differs "
                  "from rank 0 in entry {}: rank 0 has {}, rank {} has {}. Build the same model "
                  "with the same options on every rank.",
                  exchange.rank(), root, *culprit, line_of(rank0), root, theirs));
}

/// PyTorch's second step: compares rank 0's sizes and strides with this rank's.
void compare_shapes(Exchange& exchange, const std::vector<ParameterPtr>& parameters) {
  std::vector<std::int64_t> mine;
  for (const ParameterPtr& parameter : parameters) {
    const Shape& shape = parameter->data.shape();
    mine.insert(mine.end(), shape.begin(), shape.end());
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
    mine.insert(mine.end(), strides.begin(), strides.end());
  }
  if (exchange.broadcast(mine, DType::kInt64, 0, "parameter shapes") != mine) {
    throw Error(ErrorCode::kDesync,
                fmt::format("rank {}: parameter shapes differ from rank 0's", exchange.rank()));
  }
}

}  // namespace

void check_replicas(ProcessGroup& group, const std::vector<ParameterPtr>& parameters,
                    const std::vector<std::string>& description, const LoopPosition& position) {
  Exchange exchange(group, control_device(parameters.front()->data), position);
  const std::string text = fmt::format("{}\n", fmt::join(description, "\n"));
  const auto fingerprints =
      exchange.allgather(fingerprint(parameters.size(), text), "parameter count");
  const bool equal = std::ranges::all_of(
      fingerprints, [&](std::int64_t value) { return value == fingerprints.front(); });
  if (!equal) report_difference(exchange, description, text);
  compare_shapes(exchange, parameters);
}

std::string describe_tensor(const std::string& kind, const std::string& name,
                            const Tensor& tensor) {
  return fmt::format("{} {} {} {}", kind, name, to_string(tensor.dtype()),
                     to_string(tensor.shape()));
}

}  // namespace gradsync
