#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include <fmt/format.h>

#include "gradsync/comm/comm_error.hpp"
#include "gradsync/comm/reduce_functions.hpp"
#include "gradsync/tensor/tensor.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/process_group_conformance.hpp"

namespace gradsync::test {
namespace {

using Buffer = std::vector<std::byte>;

std::size_t to_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

Tensor tensor_of(const Buffer& bytes, DType dtype) {
  const auto elements = static_cast<std::int64_t>(bytes.size() / element_size(dtype));
  Tensor tensor = Tensor::empty({elements}, dtype, cpu_device());
  if (!bytes.empty()) std::memcpy(tensor.data(), bytes.data(), bytes.size());
  return tensor;
}

Buffer bytes_of(const Tensor& tensor) {
  Buffer bytes(to_size(tensor.nbytes()));
  if (!bytes.empty()) std::memcpy(bytes.data(), tensor.data(), bytes.size());
  return bytes;
}

CollectiveOptions labelled(std::int64_t step, const std::string& what = "test") {
  CollectiveOptions options;
  options.label.epoch = 0;
  options.label.step = step;
  options.label.phase = Phase::kBackward;
  options.label.what = what;
  return options;
}

void check_allreduce(const World& world, int size, DType dtype, ReduceOp op,
                     std::int64_t elements) {
  INFO("world " << size << ", " << to_string(dtype) << ", " << to_string(op) << ", " << elements
                << " elements");
  std::vector<Buffer> inputs;
  for (int rank = 0; rank < size; ++rank) inputs.push_back(test_values(dtype, elements, rank));
  std::vector<Buffer> outputs(to_size(size));
  world(size, [&](ProcessGroup& group) {
    const auto rank = to_size(group.rank());
    Tensor tensor = tensor_of(inputs[rank], dtype);
    group.allreduce(tensor, op, labelled(0))->wait();
    outputs[rank] = bytes_of(tensor);
  });
  const Buffer expected = reference_ring_allreduce(inputs, dtype, op);
  for (const Buffer& output : outputs) CHECK((output == expected));
}

void check_broadcast(const World& world, int size) {
  INFO("broadcast, world " << size);
  const std::int64_t elements = 257;
  std::vector<std::vector<Buffer>> outputs(to_size(size));
  world(size, [&](ProcessGroup& group) {
    for (int root = 0; root < size; ++root) {
      Tensor tensor =
          tensor_of(test_values(DType::kFloat32, elements, group.rank()), DType::kFloat32);
      group.broadcast(tensor, root, labelled(root))->wait();
      outputs[to_size(group.rank())].push_back(bytes_of(tensor));
    }
  });
  for (const auto& of_rank : outputs) {
    for (int root = 0; root < size; ++root) {
      CHECK((of_rank[to_size(root)] == test_values(DType::kFloat32, elements, root)));
    }
  }
}

void check_allgather(const World& world, int size) {
  INFO("allgather, world " << size);
  std::vector<Buffer> outputs(to_size(size));
  world(size, [&](ProcessGroup& group) {
    Tensor input = tensor_of(test_values(DType::kInt64, 15, group.rank()), DType::kInt64);
    Tensor output = Tensor::zeros({size, 3, 5}, DType::kInt64, cpu_device());
    group.allgather(output, input.view({3, 5}), labelled(0))->wait();
    outputs[to_size(group.rank())] = bytes_of(output);
  });
  Buffer expected;
  for (int rank = 0; rank < size; ++rank) {
    const Buffer part = test_values(DType::kInt64, 15, rank);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  for (const Buffer& output : outputs) CHECK((output == expected));
}

void check_barrier(const World& world, int size) {
  INFO("barrier, world " << size);
  std::atomic<int> arrived = 0;
  std::vector<std::vector<int>> seen(to_size(size));
  constexpr int kRounds = 3;
  world(size, [&](ProcessGroup& group) {
    for (int round = 0; round < kRounds; ++round) {
      ++arrived;
      group.barrier(labelled(round))->wait();
      seen[to_size(group.rank())].push_back(arrived);
    }
  });
  for (const auto& of_rank : seen) {
    for (int round = 0; round < kRounds; ++round)
      CHECK(of_rank[to_size(round)] >= size * (round + 1));
  }
}

void check_many_works(const World& world, int size) {
  INFO("many works under way, world " << size);
  constexpr int kWorks = 20;
  std::vector<std::vector<Buffer>> outputs(to_size(size), std::vector<Buffer>(kWorks));
  std::vector<int> incomplete(to_size(size), 0);
  const auto input = [](int work, int rank) {
    return test_values(DType::kFloat32, 100 + 37 * work, rank + 10 * work);
  };
  world(size, [&](ProcessGroup& group) {
    std::vector<Tensor> tensors;
    std::vector<WorkPtr> works;
    for (int i = 0; i < kWorks; ++i) {
      tensors.push_back(tensor_of(input(i, group.rank()), DType::kFloat32));
      works.push_back(group.allreduce(tensors.back(), ReduceOp::kSum, labelled(i)));
    }
    for (int i = kWorks; i-- > 0;) {  // the last first
      works[to_size(i)]->wait();
      works[to_size(i)]->wait();  // again, at once
      if (!works[to_size(i)]->is_completed()) ++incomplete[to_size(group.rank())];
      outputs[to_size(group.rank())][to_size(i)] = bytes_of(tensors[to_size(i)]);
    }
  });
  for (int i = 0; i < kWorks; ++i) {
    std::vector<Buffer> inputs;
    for (int rank = 0; rank < size; ++rank) inputs.push_back(input(i, rank));
    const Buffer expected = reference_ring_allreduce(inputs, DType::kFloat32, ReduceOp::kSum);
    for (const auto& of_rank : outputs) CHECK((of_rank[to_size(i)] == expected));
  }
  for (const int count : incomplete) CHECK(count == 0);
}

void check_records(const World& world, int size) {
  INFO("flight records, world " << size);
  std::vector<std::vector<CollectiveRecord>> records(to_size(size));
  world(size, [&](ProcessGroup& group) {
    Tensor tensor = Tensor::zeros({6}, DType::kFloat32, cpu_device());
    Tensor gathered = Tensor::zeros({size, 6}, DType::kFloat32, cpu_device());
    CollectiveOptions options = labelled(3, "gradients");
    options.label.bucket = 1;
    options.parameters =
        std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"weight"});
    group.allreduce(tensor, ReduceOp::kMax, options)->wait();
    group.broadcast(tensor, size - 1, labelled(3, "parameters"))->wait();
    group.allgather(gathered, tensor, labelled(3, "shapes"))->wait();
    group.barrier(labelled(4))->wait();
    records[to_size(group.rank())] = group.flight_recorder().snapshot();
  });
  for (const auto& of_rank : records) {
    REQUIRE(of_rank.size() == 4);
    for (std::size_t i = 0; i < of_rank.size(); ++i) {
      const CollectiveRecord& r = of_rank[i];
      CHECK(r.sequence == static_cast<std::int64_t>(i));
      CHECK(r.state == CollectiveState::kCompleted);
      CHECK(r.issued.count() <= r.started.count());
      CHECK(r.started.count() <= r.completed.count());
      CHECK(r.error.empty());
    }
    CHECK(of_rank[0].op == OpType::kAllreduce);
    CHECK(of_rank[0].reduce_op == ReduceOp::kMax);
    CHECK(of_rank[0].elements == 6);
    CHECK(of_rank[0].bytes == 24);
    CHECK(of_rank[0].label.bucket == 1);
    CHECK(of_rank[0].label.what == "gradients");
    REQUIRE(of_rank[0].parameters);
    CHECK(of_rank[0].parameters->front() == "weight");
    CHECK(of_rank[1].op == OpType::kBroadcast);
    CHECK(of_rank[1].root == size - 1);
    CHECK(of_rank[2].op == OpType::kAllgather);
    CHECK(of_rank[3].op == OpType::kBarrier);
  }
}

void check_nothing(const World& world, int size) {
  INFO("tensors without elements, world " << size);
  std::atomic<int> ended = 0;
  world(size, [&](ProcessGroup& group) {
    Tensor none = Tensor::empty({0}, DType::kFloat32, cpu_device());
    Tensor gathered = Tensor::empty({size, 0}, DType::kFloat32, cpu_device());
    group.allreduce(none, ReduceOp::kSum, labelled(0))->wait();
    group.broadcast(none, 0, labelled(0))->wait();
    group.allgather(gathered, none, labelled(0))->wait();
    ++ended;
  });
  CHECK(ended == size);
}

/// Runs a collective that one rank issues differently, and checks every rank's error.
void check_mismatch(const World& world, int size, int odd_rank, const char* usual_text,
                    const RankFunction& usual, const char* odd_text, const RankFunction& odd) {
  INFO("mismatch, world " << size << ", rank " << odd_rank << ": " << odd_text << " instead of "
                          << usual_text);
  std::vector<std::string> errors(to_size(size), "no error");
  std::vector<ErrorCode> codes(to_size(size), ErrorCode::kInternal);
  const auto run = [&] {
    world(size, [&](ProcessGroup& group) {
      const auto rank = to_size(group.rank());
      try {
        group.barrier(labelled(0))->wait();  // all are there before the mismatch
        (group.rank() == odd_rank ? odd : usual)(group);
      } catch (const CommError& e) {
        errors[rank] = e.what();
        codes[rank] = e.code();
        throw;
      }
    });
  };
  CHECK_THROWS_AS(run(), CommError);
  for (std::size_t rank = 0; rank < errors.size(); ++rank) {
    CHECK(codes[rank] == ErrorCode::kDesync);
    CHECK_THAT(errors[rank], contains(usual_text));
    CHECK_THAT(errors[rank], contains(odd_text));
    CHECK_THAT(errors[rank], contains(fmt::format("rank {} issued {}", odd_rank, odd_text)));
  }
}

RankFunction allreduce_of(std::int64_t elements, DType dtype = DType::kFloat32,
                          ReduceOp op = ReduceOp::kSum, std::int64_t step = 1) {
  return [=](ProcessGroup& group) {
    Tensor tensor = Tensor::zeros({elements}, dtype, cpu_device());
    group.allreduce(tensor, op, labelled(step))->wait();
  };
}

RankFunction broadcast_from(int root) {
  return [=](ProcessGroup& group) {
    Tensor tensor = Tensor::zeros({8}, DType::kFloat32, cpu_device());
    group.broadcast(tensor, root, labelled(1))->wait();
  };
}

}  // namespace

std::vector<std::byte> test_values(DType dtype, std::int64_t elements, int rank) {
  std::mt19937 random(static_cast<std::uint32_t>(1000 * rank + static_cast<int>(dtype)));
  Tensor wide = Tensor::empty({elements}, DType::kFloat32, cpu_device());
  for (float& value : wide.span<float>()) {
    const float mantissa = static_cast<float>(random() % 4096) / 4096.0f + 0.5f;
    const int exponent = static_cast<int>(random() % 13) - 6;
    value = std::ldexp(random() % 2 == 0 ? mantissa : -mantissa, exponent);
  }
  Tensor narrow = Tensor::empty({elements}, dtype, cpu_device());
  if (is_floating_point(dtype)) {
    cpu_device().cast(narrow, wide);
  } else {
    auto* bytes = reinterpret_cast<unsigned char*>(narrow.data());
    std::memset(bytes, 0, to_size(narrow.nbytes()));
    for (std::int64_t i = 0; i < elements; ++i) {
      bytes[to_size(i) * element_size(dtype)] = static_cast<unsigned char>(random() % 50);
    }
  }
  return bytes_of(narrow);
}

RingSegments reference_ring_segments(std::size_t total_bytes, std::size_t element_bytes,
                                     std::size_t ranks) {
  constexpr std::size_t kMaxSegmentBytes = 1024 * 1024;
  const auto divide_up = [](std::size_t a, std::size_t b) { return (a + b - 1) / b; };
  const auto round_up = [&](std::size_t value, std::size_t unit) {
    return divide_up(value, unit) * unit;
  };
  RingSegments segments;
  segments.count = round_up(std::max(divide_up(total_bytes, kMaxSegmentBytes), 2 * ranks), ranks);
  segments.per_rank = segments.count / ranks;
  segments.bytes = round_up(divide_up(total_bytes, segments.count), element_bytes);
  return segments;
}

std::vector<std::byte> reference_ring_allreduce(const std::vector<std::vector<std::byte>>& inputs,
                                                DType dtype, ReduceOp op) {
  const std::size_t ranks = inputs.size();
  const std::size_t width = element_size(dtype);
  const std::size_t total = inputs[0].size();
  const RingSegments segments = reference_ring_segments(total, width, ranks);

  // One element at a time: the segment decides whose chunk it is in, and the chunk the order.
  const ReduceFunction reduce = reduce_function(op, dtype);
  std::vector<std::byte> result(total);
  for (std::size_t at = 0; at < total; at += width) {
    const std::size_t chunk = at / segments.bytes / segments.per_rank;
    std::vector<std::byte> sum(width);
    for (std::size_t hop = 1; hop <= ranks; ++hop) {
      const std::byte* local = inputs[(chunk + ranks - hop) % ranks].data() + at;
      if (hop == 1) {
        std::memcpy(sum.data(), local, width);
        continue;
      }
      std::vector<std::byte> next(width);
      reduce(next.data(), local, sum.data(), 1);
      sum = next;
    }
    std::memcpy(result.data() + at, sum.data(), width);
  }
  return result;
}

void check_process_group_conformance(const World& world) {
  for (const int size : {1, 2, 3, 4, 5}) {
    for (const std::int64_t elements : {1, 2, 3, 7, 64, 1000, 100003}) {
      check_allreduce(world, size, DType::kFloat32, ReduceOp::kSum, elements);
    }
    check_broadcast(world, size);
    check_allgather(world, size);
    check_barrier(world, size);
    check_many_works(world, size);
    check_records(world, size);
    check_nothing(world, size);
  }
  // Several segments of 1 MiB a rank.
  check_allreduce(world, 2, DType::kFloat32, ReduceOp::kSum, 1567208);
  for (const DType dtype : {DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt32,
                            DType::kInt64, DType::kUInt8, DType::kFloat32}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin}) {
      check_allreduce(world, 3, dtype, op, 1001);
    }
  }
}

void check_mismatches_are_desyncs(const World& world) {
  const char* usual = "allreduce (sum) of 8 float32 elements, step 1";
  for (const int odd_rank : {0, 2}) {
    check_mismatch(world, 4, odd_rank, usual, allreduce_of(8),
                   "allreduce (sum) of 4000 float32 elements", allreduce_of(4000));
  }
  check_mismatch(world, 2, 1, usual, allreduce_of(8), "allreduce (sum) of 8 int32 elements",
                 allreduce_of(8, DType::kInt32));
  check_mismatch(world, 3, 1, usual, allreduce_of(8), "allreduce (max) of 8 float32 elements",
                 allreduce_of(8, DType::kFloat32, ReduceOp::kMax));
  check_mismatch(world, 3, 1, usual, allreduce_of(8),
                 "allreduce (sum) of 8 float32 elements, step 2",
                 allreduce_of(8, DType::kFloat32, ReduceOp::kSum, 2));
  check_mismatch(world, 4, 3, usual, allreduce_of(8), "barrier",
                 [](ProcessGroup& group) { group.barrier(labelled(1))->wait(); });
  check_mismatch(world, 4, 1, "broadcast (root 0)", broadcast_from(0), "broadcast (root 1)",
                 broadcast_from(1));
}

}  // namespace gradsync::test
