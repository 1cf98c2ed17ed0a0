#include "tests/support/operations_conformance.hpp"

#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "gradsync/comm/comm_error.hpp"
#include "tests/support/catch.hpp"

namespace gradsync::test {
namespace {

constexpr int kMaxRanks = 4;

std::size_t to_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

CollectiveOptions labelled(std::int64_t step) {
  CollectiveOptions options;
  options.label.epoch = 0;
  options.label.step = step;
  options.label.phase = Phase::kUser;
  options.label.what = "test";
  return options;
}

/// Element `index` of `rank`: small whole numbers, whose sums every dtype has exactly, in any
/// order. Different for each rank and position.
double value(int rank, std::int64_t index) {
  return static_cast<double>((3 * rank + 1) + index % 7);
}

Tensor upload(const std::vector<double>& values, Shape shape, DType dtype, Device& device) {
  Tensor host = Tensor::empty(shape, DType::kFloat32, cpu_device());
  for (std::size_t i = 0; i < values.size(); ++i) {
    host.span<float>()[i] = static_cast<float>(values[i]);
  }
  Tensor narrow = Tensor::empty(std::move(shape), dtype, cpu_device());
  for (std::int64_t i = 0; i < narrow.numel(); ++i) {
    const double v = values[to_size(i)];
    std::byte* const at = narrow.data() + to_size(i) * element_size(dtype);
    switch (dtype) {
      case DType::kInt32:
        *reinterpret_cast<std::int32_t*>(at) = static_cast<std::int32_t>(v);
        break;
      case DType::kInt64:
        *reinterpret_cast<std::int64_t*>(at) = static_cast<std::int64_t>(v);
        break;
      case DType::kUInt8:
        *reinterpret_cast<std::uint8_t*>(at) = static_cast<std::uint8_t>(v);
        break;
      default:
        break;
    }
  }
  if (is_floating_point(dtype)) cpu_device().cast(narrow, host);
  Tensor tensor = Tensor::empty(narrow.shape(), dtype, device);
  device.copy_from_host(tensor, {narrow.data(), to_size(narrow.nbytes())});
  return tensor;
}

std::vector<double> download(const Tensor& tensor) {
  Tensor narrow = Tensor::empty(tensor.shape(), tensor.dtype(), cpu_device());
  tensor.device().copy_to_host({narrow.data(), to_size(narrow.nbytes())}, tensor);
  std::vector<double> values;
  Tensor wide = Tensor::empty(tensor.shape(), DType::kFloat32, cpu_device());
  if (is_floating_point(tensor.dtype())) cpu_device().cast(wide, narrow);
  for (std::int64_t i = 0; i < narrow.numel(); ++i) {
    const std::byte* const at = narrow.data() + to_size(i) * element_size(tensor.dtype());
    switch (tensor.dtype()) {
      case DType::kInt32:
        values.push_back(*reinterpret_cast<const std::int32_t*>(at));
        break;
      case DType::kInt64:
        values.push_back(static_cast<double>(*reinterpret_cast<const std::int64_t*>(at)));
        break;
      case DType::kUInt8:
        values.push_back(*reinterpret_cast<const std::uint8_t*>(at));
        break;
      default:
        values.push_back(static_cast<double>(wide.span<float>()[to_size(i)]));
    }
  }
  return values;
}

std::vector<double> values_of(int rank, std::int64_t elements, std::int64_t from = 0) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < elements; ++i) values.push_back(value(rank, from + i));
  return values;
}

double reduced(ReduceOp op, int size, std::int64_t index) {
  double result = value(0, index);
  for (int rank = 1; rank < size; ++rank) {
    const double v = value(rank, index);
    result = op == ReduceOp::kMax   ? std::max(result, v)
             : op == ReduceOp::kMin ? std::min(result, v)
                                    : result + v;
  }
  return result;
}

using Values = std::vector<std::vector<double>>;  // by rank

void check_reduce(const DeviceWorld& world, int size, DType dtype, ReduceOp op,
                  std::int64_t elements) {
  for (int root = 0; root < size; ++root) {
    INFO("reduce, world " << size << ", root " << root << ", " << to_string(dtype) << ", "
                          << to_string(op) << ", " << elements << " elements");
    Values results(to_size(size));
    world(size, [&](ProcessGroup& group, Device& device) {
      Tensor tensor = upload(values_of(group.rank(), elements), {elements}, dtype, device);
      group.reduce(tensor, root, op, labelled(0))->wait();
      results[to_size(group.rank())] = download(tensor);
    });
    for (int rank = 0; rank < size; ++rank) {
      std::vector<double> expected = values_of(rank, elements);
      if (rank == root) {
        for (std::int64_t i = 0; i < elements; ++i) expected[to_size(i)] = reduced(op, size, i);
      }
      CHECK(results[to_size(rank)] == expected);
    }
  }
}

void check_reduce_scatter(const DeviceWorld& world, int size, DType dtype, ReduceOp op,
                          std::int64_t part, bool in_place) {
  INFO("reduce_scatter, world " << size << ", " << to_string(dtype) << ", " << to_string(op)
                                << ", parts of " << part << (in_place ? ", in place" : ""));
  Values results(to_size(size)), inputs(to_size(size));
  world(size, [&](ProcessGroup& group, Device& device) {
    const int rank = group.rank();
    Tensor input = upload(values_of(rank, size * part), {size, part}, dtype, device);
    Tensor output =
        in_place ? input.slice(rank * part, {part}) : Tensor::zeros({part}, dtype, device);
    group.reduce_scatter(output, input, op, labelled(0))->wait();
    results[to_size(rank)] = download(output);
    inputs[to_size(rank)] = download(input);
  });
  for (int rank = 0; rank < size; ++rank) {
    std::vector<double> expected;
    for (std::int64_t i = 0; i < part; ++i) {
      expected.push_back(reduced(op, size, rank * part + i));
    }
    CHECK(results[to_size(rank)] == expected);
    if (!in_place) CHECK(inputs[to_size(rank)] == values_of(rank, size * part));
  }
}

void check_allgather_into_place(const DeviceWorld& world, int size, DType dtype) {
  INFO("allgather into place, world " << size << ", " << to_string(dtype));
  constexpr std::int64_t kPart = 13;
  Values results(to_size(size));
  world(size, [&](ProcessGroup& group, Device& device) {
    const int rank = group.rank();
    std::vector<double> before(to_size(size * kPart), 0.0);
    for (std::int64_t i = 0; i < kPart; ++i) before[to_size(rank * kPart + i)] = value(rank, i);
    Tensor output = upload(before, {size, kPart}, dtype, device);
    group.allgather(output, output.slice(rank * kPart, {kPart}), labelled(0))->wait();
    results[to_size(rank)] = download(output);
  });
  std::vector<double> expected;
  for (int rank = 0; rank < size; ++rank) {
    const auto part = values_of(rank, kPart);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  for (const auto& result : results) CHECK(result == expected);
}

/// How many rows rank `from` sends to rank `to`: zeros among them.
std::int64_t rows_between(int from, int to) {
  return (2 * from + 3 * to) % 5;
}

void check_alltoall(const DeviceWorld& world, int size, DType dtype, bool equal) {
  constexpr std::int64_t kColumns = 3;
  INFO("alltoall, world " << size << ", " << to_string(dtype) << (equal ? "" : ", unequal splits"));
  const auto rows = [&](int from, int to) { return equal ? 2 : rows_between(from, to); };
  Values results(to_size(size));
  world(size, [&](ProcessGroup& group, Device& device) {
    const int rank = group.rank();
    std::vector<std::int64_t> in, out;
    for (int peer = 0; peer < size; ++peer) {
      in.push_back(rows(rank, peer));
      out.push_back(rows(peer, rank));
    }
    const std::int64_t sent = std::accumulate(in.begin(), in.end(), std::int64_t{0});
    const std::int64_t got = std::accumulate(out.begin(), out.end(), std::int64_t{0});
    Tensor input = upload(values_of(rank, sent * kColumns), {sent, kColumns}, dtype, device);
    Tensor output = Tensor::zeros({got, kColumns}, dtype, device);
    const WorkPtr work = equal ? group.alltoall(output, input, labelled(0))
                               : group.alltoall(output, input, out, in, labelled(0));
    work->wait();
    results[to_size(rank)] = download(output);
  });
  for (int rank = 0; rank < size; ++rank) {
    std::vector<double> expected;
    for (int from = 0; from < size; ++from) {
      std::int64_t before = 0;
      for (int to = 0; to < rank; ++to) before += rows(from, to);
      const auto part = values_of(from, rows(from, rank) * kColumns, before * kColumns);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    CHECK(results[to_size(rank)] == expected);
  }
}

/// A pipeline there and back, then several messages of different sizes from one rank to another.
void check_messages(const DeviceWorld& world, int size, DType dtype) {
  INFO("send and recv, world " << size << ", " << to_string(dtype));
  constexpr std::int64_t kElements = 40;
  Values results(to_size(size));
  world(size, [&](ProcessGroup& group, Device& device) {
    const int rank = group.rank();
    auto& result = results[to_size(rank)];
    const auto note = [&](const Tensor& tensor) {
      const auto values = download(tensor);
      result.insert(result.end(), values.begin(), values.end());
    };
    Tensor tensor = upload(values_of(rank, kElements), {kElements}, dtype, device);
    Tensor buffer = Tensor::zeros({kElements}, dtype, device);
    if (rank > 0) {
      group.recv(buffer, rank - 1, labelled(1))->wait();
      note(buffer);
    }
    if (rank + 1 < size) group.send(tensor, rank + 1, labelled(1))->wait();
    group.barrier(labelled(2))->wait();  // collectives and messages have numbers of their own
    if (size < 2 || rank > 1) return;
    std::vector<Tensor> parts;
    std::vector<WorkPtr> works;
    for (std::int64_t i = 1; i <= 3; ++i) {
      parts.push_back(upload(values_of(rank, i, 10 * i), {i}, dtype, device));
      works.push_back(rank == 0 ? group.send(parts.back(), 1, labelled(2 + i))
                                : group.recv(parts.back(), 0, labelled(2 + i)));
    }
    for (const WorkPtr& work : works) work->wait();
    if (rank == 1) std::for_each(parts.begin(), parts.end(), note);
  });
  for (int rank = 0; rank < size; ++rank) {
    std::vector<double> expected;
    if (rank > 0) expected = values_of(rank - 1, kElements);
    for (std::int64_t i = 1; rank == 1 && i <= 3; ++i) {
      const auto part = values_of(0, i, 10 * i);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    CHECK(results[to_size(rank)] == expected);
  }
}

void check_empty(const DeviceWorld& world, int size) {
  INFO("tensors without elements, world " << size);
  std::vector<int> ended(to_size(size), 0);
  world(size, [&](ProcessGroup& group, Device& device) {
    Tensor none = Tensor::empty({0}, DType::kFloat32, device);
    Tensor parts = Tensor::empty({size, 0}, DType::kFloat32, device);
    Tensor other = Tensor::empty({size, 0}, DType::kFloat32, device);
    group.reduce(none, 0, ReduceOp::kSum, labelled(0))->wait();
    group.reduce_scatter(none, parts, ReduceOp::kSum, labelled(0))->wait();
    group.alltoall(other, parts, labelled(0))->wait();
    if (size > 1 && group.rank() == 0) group.send(none, 1, labelled(0))->wait();
    if (group.rank() == 1) group.recv(none, 0, labelled(0))->wait();
    ended[to_size(group.rank())] = 1;
  });
  for (const int end : ended) CHECK(end == 1);
}

void check_records(const DeviceWorld& world) {
  // Read after the shutdown: on a GPU, what happened is noted later than waits return.
  std::vector<std::shared_ptr<FlightRecorder>> recorders(3);
  world(3, [&](ProcessGroup& group, Device& device) {
    Tensor whole = Tensor::zeros({3, 4}, DType::kFloat32, device);
    Tensor other = Tensor::zeros({3, 4}, DType::kFloat32, device);
    Tensor part = Tensor::zeros({4}, DType::kFloat32, device);
    group.reduce(part, 2, ReduceOp::kMax, labelled(0))->wait();
    group.reduce_scatter(part, whole, ReduceOp::kSum, labelled(1))->wait();
    group.alltoall(other, whole, labelled(2))->wait();
    if (group.rank() == 0) group.send(part, 2, labelled(3))->wait();
    if (group.rank() == 2) group.recv(part, 0, labelled(3))->wait();
    group.barrier(labelled(4))->wait();
    recorders[to_size(group.rank())] = group.shared_flight_recorder();
  });
  for (int rank = 0; rank < 3; ++rank) {
    const auto of_rank = recorders[to_size(rank)]->snapshot();
    REQUIRE(of_rank.size() == (rank == 1 ? 4u : 5u));
    for (const CollectiveRecord& r : of_rank) {
      CHECK(r.state == CollectiveState::kCompleted);
      CHECK(r.issued.count() <= r.started.count());
      CHECK(r.started.count() <= r.completed.count());
    }
    CHECK(of_rank[0].op == OpType::kReduce);
    CHECK(of_rank[0].root == 2);
    CHECK(of_rank[0].reduce_op == ReduceOp::kMax);
    CHECK(of_rank[1].op == OpType::kReduceScatter);
    CHECK(of_rank[1].bytes == 48);
    CHECK(of_rank[2].op == OpType::kAlltoall);
    CHECK(of_rank[2].elements == 12);
    CHECK(of_rank.back().op == OpType::kBarrier);
    CHECK(of_rank.back().sequence == 3);  // a message takes no number of the group
    if (rank == 1) continue;
    CHECK(of_rank[3].op == (rank == 0 ? OpType::kSend : OpType::kRecv));
    CHECK(of_rank[3].group == "default_pg:0->2");
    CHECK(of_rank[3].root == (rank == 0 ? 2 : 0));
    CHECK(of_rank[3].sequence == 0);
  }
}

/// Each call is refused on every rank before it issues anything.
void check_wrong_arguments(const DeviceWorld& world) {
  using Call = std::function<void(ProcessGroup&, Device&)>;
  const auto tensor = [](Shape shape, Device& device, DType dtype = DType::kFloat32) {
    return Tensor::zeros(std::move(shape), dtype, device);
  };
  const std::vector<std::pair<std::string, Call>> cases = {
      {"reduce with root 2",
       [&](ProcessGroup& g, Device& d) {
         g.reduce(tensor({2}, d), 2, ReduceOp::kSum, labelled(0));
       }},
      {"reduce cannot average int32",
       [&](ProcessGroup& g, Device& d) {
         g.reduce(tensor({2}, d, DType::kInt32), 0, ReduceOp::kAverage, labelled(0));
       }},
      {"reduce_scatter of 6 float32 elements",
       [&](ProcessGroup& g, Device& d) {
         g.reduce_scatter(tensor({2}, d), tensor({2, 3}, d), ReduceOp::kSum, labelled(0));
       }},
      {"reduce_scatter: the tensors overlap",
       [&](ProcessGroup& g, Device& d) {
         Tensor input = tensor({4}, d);
         g.reduce_scatter(input.slice(1, {2}), input, ReduceOp::kSum, labelled(0));
       }},
      {"allgather: the tensors overlap",
       [&](ProcessGroup& g, Device& d) {
         Tensor output = tensor({4}, d);
         g.allgather(output, output.slice(1, {2}), labelled(0));
       }},
      {"2 ranks cannot share equally",
       [&](ProcessGroup& g, Device& d) {
         g.alltoall(tensor({3}, d), tensor({3}, d), labelled(0));
       }},
      {"input_split_sizes needs 2 sizes",
       [&](ProcessGroup& g, Device& d) {
         g.alltoall(tensor({4}, d), tensor({4}, d), {2, 2}, {5, -1}, labelled(0));
       }},
      {"output_split_sizes needs 2 sizes",
       [&](ProcessGroup& g, Device& d) {
         g.alltoall(tensor({4}, d), tensor({4}, d), {4}, {2, 2}, labelled(0));
       }},
      {"alltoall is not done in place",
       [&](ProcessGroup& g, Device& d) {
         Tensor both = tensor({4}, d);
         g.alltoall(both, both, labelled(0));
       }},
      {"send to rank 7",
       [&](ProcessGroup& g, Device& d) { g.send(tensor({1}, d), 7, labelled(0)); }},
      {"which is this rank",
       [&](ProcessGroup& g, Device& d) { g.recv(tensor({1}, d), g.rank(), labelled(0)); }},
  };
  for (const auto& [text, call] : cases) {
    INFO(text);
    std::vector<std::string> errors(2);
    std::vector<std::int64_t> issued(2, -1);
    world(2, [&](ProcessGroup& group, Device& device) {
      const auto rank = to_size(group.rank());
      try {
        call(group, device);
      } catch (const Error& e) {
        if (e.code() == ErrorCode::kMisuse) errors[rank] = e.what();
      }
      issued[rank] = group.flight_recorder().total_scheduled();
    });
    for (int rank = 0; rank < 2; ++rank) {
      CHECK_THAT(errors[to_size(rank)], contains(fmt::format("rank {}: ", rank)));
      CHECK_THAT(errors[to_size(rank)], contains(text));
      CHECK(issued[to_size(rank)] == 0);
    }
  }
}

}  // namespace

DeviceWorld on_cpu(const World& world) {
  return [world](int size, const DeviceRankFunction& function) {
    world(size, [&](ProcessGroup& group) { function(group, cpu_device()); });
  };
}

void check_operations_conformance(const DeviceWorld& world) {
  for (int size = 1; size <= kMaxRanks; ++size) {
    for (const std::int64_t elements : {1, 5, 1000}) {
      check_reduce(world, size, DType::kFloat32, ReduceOp::kSum, elements);
      check_reduce_scatter(world, size, DType::kFloat32, ReduceOp::kSum, elements, false);
      check_reduce_scatter(world, size, DType::kFloat32, ReduceOp::kSum, elements, true);
    }
    check_allgather_into_place(world, size, DType::kFloat32);
    check_alltoall(world, size, DType::kFloat32, true);
    check_alltoall(world, size, DType::kFloat32, false);
    check_messages(world, size, DType::kFloat32);
    check_empty(world, size);
  }
  for (const DType dtype : {DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt32,
                            DType::kInt64, DType::kUInt8}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin}) {
      check_reduce(world, 3, dtype, op, 11);
      check_reduce_scatter(world, 3, dtype, op, 11, false);
    }
    check_allgather_into_place(world, 3, dtype);
    check_alltoall(world, 3, dtype, false);
    check_messages(world, 3, dtype);
  }
  check_records(world);
  check_wrong_arguments(world);
}

}  // namespace gradsync::test
