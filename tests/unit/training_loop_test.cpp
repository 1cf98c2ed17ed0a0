// The training loop alone: at which points its observers see it, and what its policy decides.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "gradsync/models/replay.hpp"
#include "gradsync/optim/sgd.hpp"
#include "gradsync/testbed/loop/training_loop.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thread_process_group.hpp"

namespace gradsync {
namespace {

using Names = std::vector<std::string>;

/// Writes down the points that it sees, and what comes with them.
class PointLog final : public LoopObserver {
 public:
  explicit PointLog(std::string name, Names& log) : name_(std::move(name)), log_(&log) {}

  void before_step(const LoopPosition& at) override { add("before_step", at); }
  void before_data(const LoopPosition& at) override {
    add("before_data", at);
    if (skips_ == at.step) throw SkippedStep{"as asked"};
  }
  void after_data(const LoopPosition& at, const Batch&) override { add("after_data", at); }
  void before_forward(const LoopPosition& at) override { add("before_forward", at); }
  void after_forward(const LoopPosition& at, const Tensor&, bool reduces) override {
    add(reduces ? "after_forward, reduces" : "after_forward", at);
  }
  void before_backward(const LoopPosition& at) override { add("before_backward", at); }
  void after_backward(const LoopPosition& at, bool last) override {
    add(last ? "after_backward, last" : "after_backward", at);
  }
  void before_optimizer(const LoopPosition& at) override { add("before_optimizer", at); }
  void after_clip(const LoopPosition& at, const std::optional<Clipping>& clipping) override {
    add(clipping ? "after_clip, clipped" : "after_clip", at);
  }
  void after_optimizer(const LoopPosition& at) override { add("after_optimizer", at); }
  void after_step(const LoopPosition& at) override { add("after_step", at); }
  void step_skipped(const LoopPosition& at, const std::string& reason) override {
    add("step_skipped, " + reason, at);
  }
  void loop_left(const LoopPosition& at, const std::string& reason) override {
    add("loop_left, " + reason, at);
  }
  void before_join() override { log_->push_back(name_ + "before_join"); }
  void after_epoch(const LoopPosition& last) override { add("after_epoch", last); }
  void after_training(const LoopPosition& last) override { add("after_training", last); }

  void skip(std::int64_t step) { skips_ = step; }

 private:
  void add(const std::string& point, const LoopPosition& at) {
    log_->push_back(fmt::format("{}{} {}.{}.{}", name_, point, at.epoch, at.step, at.micro_step));
  }

  std::string name_;
  Names* log_;
  std::optional<std::int64_t> skips_;
};

/// One rank with a model of one parameter, `samples` batches of one sample an epoch.
struct Job {
  explicit Job(test::RankContext& context, std::int64_t samples)
      : dataset(make_index_dataset(samples)),
        loader(*dataset, DistributedSampler(samples, 1, 0), 1, cpu_device()),
        model(profile(), 0, 1, {}, cpu_device()),
        graph(context.clock),
        ddp(model, context.group),
        optimizer(model.parameters(), SgdOptions{.lr = 0.1}),
        rates(optimizer, {}),
        scaler(model.parameters()) {}

  static std::shared_ptr<const ModelProfile> profile() {
    auto profile = std::make_shared<ModelProfile>();
    profile->name = "one";
    profile->parameters = {{"weight", {3}, DType::kFloat32, Seconds{0.010}}};
    return profile;
  }

  void run(LoopObserver& observer, const LoopOptions& options, const LoopPolicy& policy = {},
           std::optional<double> max_norm = {}) {
    GradientClipper clipper(model.parameters(), {.max_norm = max_norm});
    TrainingLoop({loader, model, ddp, graph, scaler, clipper, rates, optimizer, policy, observer},
                 options)
        .run();
  }

  std::shared_ptr<const Dataset> dataset;
  DataLoader loader;
  ReplayModel model;
  Graph graph;
  DistributedDataParallel ddp;
  Sgd optimizer;
  LearningRates rates;
  GradientScaler scaler;
};

void with_job(std::int64_t samples, const std::function<void(Job&)>& body) {
  test::run_ranks(1, [&](test::RankContext& context) {
    Job job(context, samples);
    body(job);
  });
}

Names batch_points(const std::string& at, bool reduces, bool last) {
  return {"before_data " + at,     "after_data " + at,
          "before_forward " + at,  (reduces ? "after_forward, reduces " : "after_forward ") + at,
          "before_backward " + at, (last ? "after_backward, last " : "after_backward ") + at};
}

Names step_end(const std::string& at) {
  return {"before_optimizer " + at, "after_clip " + at, "after_optimizer " + at,
          "after_step " + at};
}

Names operator+(Names a, const Names& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_CASE("training loop: the points of an accumulated step, and of the odd one at the end") {
  Names log;
  with_job(3, [&](Job& job) {
    PointLog observer("", log);
    LoopOptions options;
    options.steps = 10;
    options.accumulate_steps = 2;
    job.run(observer, options);
  });
  CHECK(log == Names{"before_step 0.0.0"} + batch_points("0.0.0", false, false) +
                   batch_points("0.0.1", true, true) + step_end("0.0.0") +
                   Names{"before_step 0.1.0"} + batch_points("0.1.0", true, true) +
                   step_end("0.1.0") +
                   Names{"before_step 0.2.0", "after_epoch 0.1.0", "after_training 0.1.0"});
}

TEST_CASE("training loop: a step that is skipped counts, and changes no parameter") {
  Names log;
  with_job(2, [&](Job& job) {
    const Tensor& weight = job.model.parameters().front()->data;
    PointLog observer("", log);
    observer.skip(0);
    LoopOptions options;
    options.steps = 1;
    const Tensor before = weight.clone();
    job.run(observer, options);
    CHECK(std::ranges::equal(weight.span<float>(), before.span<float>()));
    options.first_step = 1;
    options.steps = 2;
    job.run(observer, options);
    CHECK_FALSE(std::ranges::equal(weight.span<float>(), before.span<float>()));
  });
  CHECK(log == Names{"before_step 0.0.0", "before_data 0.0.0", "step_skipped, as asked 0.0.0",
                     "after_epoch 0.0.0", "after_training 0.0.0", "before_step 0.1.0"} +
                   batch_points("0.1.0", true, true) + step_end("0.1.0") +
                   Names{"after_epoch 0.1.0", "after_training 0.1.0"});
}

TEST_CASE("training loop: the policy decides what is reduced, and when the rank leaves") {
  class Policy final : public LoopPolicy {
   public:
    bool reduces(const LoopPosition& at, bool by_default) const override {
      CHECK(by_default == (at.micro_step == 1));
      return at.micro_step == 0;
    }
    std::optional<std::string> leaves(std::int64_t step) const override {
      return step == 1 ? std::optional<std::string>("enough") : std::nullopt;
    }
  };
  Names log;
  with_job(4, [&](Job& job) {
    PointLog observer("", log);
    LoopOptions options;
    options.epochs = 2;
    options.steps = 4;
    options.accumulate_steps = 2;
    job.run(observer, options, Policy());
  });
  CHECK(log == Names{"before_step 0.0.0"} + batch_points("0.0.0", true, false) +
                   batch_points("0.0.1", false, true) + step_end("0.0.0") +
                   Names{"loop_left, enough 0.1.0", "after_training 1.0.0"});
}

TEST_CASE("training loop: the first observer encloses the others") {
  Names log;
  with_job(1, [&](Job& job) {
    PointLog outer("outer ", log);
    PointLog inner("inner ", log);
    LoopObservers both;
    both.add(outer);
    both.add(inner);
    LoopOptions options;
    options.steps = 1;
    options.join.enable = true;
    job.run(both, options, {}, 1.0);
  });
  Names expected;
  const auto in = [&](const std::string& point) {
    expected.insert(expected.end(), {"outer " + point, "inner " + point});
  };
  const auto out = [&](const std::string& point) {
    expected.insert(expected.end(), {"inner " + point, "outer " + point});
  };
  in("before_step 0.0.0");
  in("before_data 0.0.0");
  out("after_data 0.0.0");
  in("before_forward 0.0.0");
  out("after_forward, reduces 0.0.0");
  in("before_backward 0.0.0");
  out("after_backward, last 0.0.0");
  in("before_optimizer 0.0.0");
  out("after_clip, clipped 0.0.0");
  out("after_optimizer 0.0.0");
  out("after_step 0.0.0");
  in("before_join");
  out("after_epoch 0.0.0");
  out("after_training 0.0.0");
  CHECK(log == expected);
}

}  // namespace
}  // namespace gradsync
