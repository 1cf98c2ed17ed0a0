#include <optional>
#include <string>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/ddp/ddp_logging.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "gradsync/ddp/join.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/recorded.hpp"
#include "tests/support/small_models.hpp"
#include "tests/support/thread_process_group.hpp"

using namespace gradsync;
using gradsync::test::LambdaModel;
using gradsync::test::load_recorded;
using gradsync::test::make_parameter;
using gradsync::test::RankContext;
using gradsync::test::results_of_ranks;
using gradsync::test::scripted_loss;
using gradsync::test::trace;
using gradsync::test::TraceEntry;
using gradsync::test::values_of;
using Trace = std::vector<TraceEntry>;

namespace {

constexpr int kWorld = 3;

Trace recorded_trace(const nlohmann::json& recorded) {
  Trace result;
  for (const auto& entry : recorded) {
    std::string op = entry.at(0);
    if (op == "all_reduce") op = "allreduce";
    if (op == "all_gather") op = "allgather";
    result.emplace_back(op, entry.at(1).at(0).at(0).get<std::int64_t>());
  }
  return result;
}

/// Numbers, truth values and lists of them, one after another.
std::vector<float> flat_numbers(const nlohmann::json& recorded) {
  if (recorded.is_boolean()) return {recorded.get<bool>() ? 1.0f : 0.0f};
  if (recorded.is_number()) return {recorded.get<float>()};
  std::vector<float> result;
  for (const auto& part : recorded) {
    const auto numbers = flat_numbers(part);
    result.insert(result.end(), numbers.begin(), numbers.end());
  }
  return result;
}

std::vector<std::string> logged_buckets(const DistributedDataParallel& ddp) {
  const auto& texts = ddp.logging_data().strs_map;
  return {texts.at("bucket_sizes"), texts.at("rebuilt_bucket_sizes"),
          texts.at("rebuilt_per_bucket_param_indices")};
}

/// What a rank did, under the names of the recording.
struct Record {
  std::vector<std::pair<std::string, Trace>> traces;
  std::vector<std::pair<std::string, std::vector<float>>> values;
  std::vector<std::pair<std::string, std::vector<std::string>>> texts;
};

void check(const Record& record, const nlohmann::json& recorded) {
  // The recording names what it recorded with a remark, e.g. "B.ctor find_unused_parameters=...".
  const auto find = [&](const std::string& name) {
    for (const auto& [key, value] : recorded.items()) {
      if (key.rfind(name, 0) == 0) return value;
    }
    throw std::runtime_error("nothing recorded as " + name);
  };
  for (const auto& [name, actual] : record.traces) {
    CAPTURE(name);
    CHECK(actual == recorded_trace(find(name)));
  }
  for (const auto& [name, actual] : record.values) {
    CAPTURE(name);
    CHECK(actual == flat_numbers(find(name)));
  }
  for (const auto& [name, actual] : record.texts) {
    CAPTURE(name);
    CHECK(actual == find(name).get<std::vector<std::string>>());
  }
}

void check_all(const std::vector<Record>& records) {
  const auto recorded = load_recorded("pytorch/collectives.json");
  for (int rank = 0; rank < kWorld; ++rank) {
    CAPTURE(rank);
    check(records[static_cast<std::size_t>(rank)], recorded.at("ranks").at(std::to_string(rank)));
  }
}

/// Notes what a rank issues between two calls.
class Tracer {
 public:
  Tracer(const ProcessGroup& group, Record& record) : group_(group), record_(record) {}
  void note(const std::string& name) {
    record_.traces.emplace_back(name, trace(group_, seen_));
    seen_ = trace(group_).size();
  }

 private:
  const ProcessGroup& group_;
  Record& record_;
  std::size_t seen_ = 0;
};

/// The recording's options: first bucket of 100 bytes, 400 bytes after it.
DdpOptions recorded_options() {
  DdpOptions options;
  options.bucket_cap_mb = 400.0 / 1024 / 1024;
  options.first_bucket_bytes = 100;
  options.pytorch_version = {1, 13};
  return options;
}

/// a: Linear(4, 8), bn: BatchNorm1d(8) (optional), b: Linear(8, 8), c: Linear(8, 2).
std::vector<ParameterPtr> layers(bool batch_norm) {
  std::vector<ParameterPtr> p{make_parameter("a.weight", {8, 4}), make_parameter("a.bias", {8})};
  if (batch_norm) {
    p.push_back(make_parameter("bn.weight", {8}));
    p.push_back(make_parameter("bn.bias", {8}));
  }
  p.push_back(make_parameter("b.weight", {8, 8}));
  p.push_back(make_parameter("b.bias", {8}));
  p.push_back(make_parameter("c.weight", {2, 8}));
  p.push_back(make_parameter("c.bias", {2}));
  return p;
}

std::vector<BufferPtr> batch_norm_buffers() {
  const auto make = [](const char* name, Shape shape, DType dtype) {
    return std::make_shared<Buffer>(
        Buffer{name, Tensor::zeros(std::move(shape), dtype, cpu_device())});
  };
  return {make("bn.running_mean", {8}, DType::kFloat32),
          make("bn.running_var", {8}, DType::kFloat32),
          make("bn.num_batches_tracked", {}, DType::kInt64)};
}

/// The order in which PyTorch's backward reaches these layers.
std::vector<ParameterPtr> backward_order(const std::vector<ParameterPtr>& p) {
  if (p.size() == 8) return {p[7], p[6], p[5], p[4], p[2], p[3], p[1], p[0]};
  return {p[5], p[4], p[3], p[2], p[1], p[0]};
}

}  // namespace

TEST_CASE("collectives with buffers, rebuild and no_sync are those recorded from PyTorch") {
  check_all(results_of_ranks(kWorld, [](RankContext& rank) {
    const auto p = layers(true);
    LambdaModel model(
        p,
        [&](const Batch&, Graph& graph) {
          return std::vector{scripted_loss(graph, backward_order(p), 1)};
        },
        batch_norm_buffers());
    Record record;
    Tracer tracer(rank.group, record);
    DistributedDataParallel ddp(model, rank.group, recorded_options());
    tracer.note("A.ctor");
    const auto iterate = [&](const std::string& name) {
      rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());
      tracer.note(name);
    };
    for (const char* name : {"A.iter1", "A.iter2", "A.iter3", "A.iter4"}) iterate(name);
    {
      const NoSyncGuard no_sync(ddp);
      iterate("A.no_sync iteration");
    }
    iterate("A.first sync iteration after no_sync");
    iterate("A.second sync iteration after no_sync");
    record.texts.emplace_back("A.bucket_sizes", logged_buckets(ddp));
    return record;
  }));
}

TEST_CASE("collectives and gradients with find_unused_parameters are those recorded from PyTorch") {
  check_all(results_of_ranks(kWorld, [](RankContext& rank) {
    auto p = layers(false);
    const auto order = backward_order(p);
    p.push_back(make_parameter("u.weight", {3, 3}));
    p.push_back(make_parameter("u.bias", {3}));
    bool uses_branch = false;
    LambdaModel model(p, [&](const Batch&, Graph& graph) {
      auto uses = order;
      if (uses_branch) uses.insert(uses.begin(), {p[7], p[6]});
      return std::vector{scripted_loss(graph, uses, 50)};
    });
    DdpOptions options = recorded_options();
    options.find_unused_parameters = true;
    Record record;
    Tracer tracer(rank.group, record);
    DistributedDataParallel ddp(model, rank.group, options);
    tracer.note("B.ctor");
    const auto iterate = [&](const std::string& name) {
      rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());
      tracer.note(name);
    };
    const auto unused = [&](const std::string& name) {
      record.values.emplace_back(name, std::vector<float>{p[7]->grad.defined() ? 0.0f : 1.0f});
    };
    for (const char* name : {"B.iter1", "B.iter2", "B.iter3"}) iterate(name);
    unused("B.unused grads after iters");
    uses_branch = rank.rank == 0;
    iterate("B.iter: rank 0 uses branch");
    unused("B.unused grad is None afterwards");
    record.values.emplace_back("B.unused bias grad", values_of(p[7]->grad));
    uses_branch = false;
    iterate("B.iter: nobody uses branch");
    record.values.emplace_back("B.unused bias grad after globally unused iter",
                               values_of(p[7]->grad));
    return record;
  }));
}

TEST_CASE("collectives with static_graph are those recorded from PyTorch") {
  check_all(results_of_ranks(kWorld, [](RankContext& rank) {
    auto p = layers(false);
    const auto order = backward_order(p);
    p.push_back(make_parameter("u.weight", {3, 3}));
    p.push_back(make_parameter("u.bias", {3}));
    LambdaModel model(
        p, [&](const Batch&, Graph& graph) { return std::vector{scripted_loss(graph, order, 1)}; });
    DdpOptions options = recorded_options();
    options.static_graph = true;
    Record record;
    Tracer tracer(rank.group, record);
    DistributedDataParallel ddp(model, rank.group, options);
    tracer.note("C.ctor");
    for (const char* name : {"C.iter1", "C.iter2", "C.iter3", "C.iter4"}) {
      rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());
      tracer.note(name);
    }
    record.texts.emplace_back("C.buckets", logged_buckets(ddp));
    record.values.emplace_back("C.unused grad None",
                               std::vector<float>{p[7]->grad.defined() ? 0.0f : 1.0f});
    return record;
  }));
}

TEST_CASE("collectives and gradients of uneven inputs in a join are those recorded from PyTorch") {
  const bool divide_by_initial = GENERATE(true, false);
  const std::string name = divide_by_initial
                               ? "D.join divide_by_initial_world_size=True with buffers"
                               : "E.join divide_by_initial_world_size=False";
  check_all(results_of_ranks(kWorld, [&](RankContext& rank) {
    const auto p = layers(true);
    LambdaModel model(
        p,
        [&](const Batch&, Graph& graph) {
          return std::vector{scripted_loss(graph, backward_order(p), 5)};
        },
        batch_norm_buffers());
    DistributedDataParallel ddp(model, rank.group, recorded_options());
    const std::size_t constructor = trace(rank.group).size();
    Record record;
    std::vector<float> gradients;
    Join join(ddp, {.divide_by_initial_world_size = divide_by_initial});
    for (int iteration = 0; iteration < rank.rank + 2; ++iteration) {
      for (const auto& parameter : p) parameter->grad = Tensor();
      rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());
      for (const float value : values_of(p.back()->grad)) gradients.push_back(value);
    }
    join.finish();
    record.traces.emplace_back(name + " [rank", trace(rank.group, constructor));
    record.values.emplace_back(name + " c.bias.grad per own iteration", gradients);
    return record;
  }));
}

TEST_CASE("throw_on_early_termination stops all ranks in the iteration recorded from PyTorch") {
  const auto recorded = load_recorded("pytorch/collectives.json").at("ranks");
  const auto results = results_of_ranks(kWorld, [&](RankContext& rank) {
    const auto p = layers(false);
    LambdaModel model(p, [&](const Batch&, Graph& graph) {
      return std::vector{scripted_loss(graph, backward_order(p), 5)};
    });
    DistributedDataParallel ddp(model, rank.group, recorded_options());
    const std::size_t constructor = trace(rank.group).size();
    int completed = 0;
    std::string error;
    try {
      Join join(ddp, {.throw_on_early_termination = true});
      for (; completed < rank.rank + 2; ++completed) {
        rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());
      }
      join.finish();
    } catch (const EarlyTermination& stopped) {
      error = stopped.what();
    }
    return std::tuple(completed, error, trace(rank.group, constructor));
  });
  for (int rank = 0; rank < kWorld; ++rank) {
    const auto& [completed, error, collectives] = results[static_cast<std::size_t>(rank)];
    const auto& of_rank = recorded.at(std::to_string(rank));
    CHECK(completed == of_rank.at("F.completed/err").at(0).get<int>());
    CHECK_THAT(error, gradsync::test::contains(rank == 0 ? "exhausted all of its inputs"
                                                         : "at least one rank that exhausted"));
    const std::string key = "F.join throw_on_early_termination [rank " + std::to_string(rank) +
                            " has " + std::to_string(rank + 2) + " inputs]";
    CHECK(collectives == recorded_trace(of_rank.at(key)));
  }
}
