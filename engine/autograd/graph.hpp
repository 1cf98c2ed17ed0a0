#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "gradsync/autograd/parameter.hpp"
#include "gradsync/core/call_site.hpp"
#include "gradsync/core/clock.hpp"
#include "gradsync/tensor/tensor.hpp"

namespace gradsync {

class Node;
using NodePtr = std::shared_ptr<Node>;

/// A tensor in a computation. `node` is the operation that produced it; null for constants and
/// while gradients are disabled.
struct Variable {
  Tensor data;
  NodePtr node;
};

/// One backward pass, as gradient hooks see it. The pass is run either by Graph::backward or by a
/// user's own autograd.
class BackwardPass {
 public:
  /// `site`: where the pass was started.
  explicit BackwardPass(const CallSite& site) : site_(site) {}

  /// Runs `callback` once, after the last node of this pass, on the rank's thread (PyTorch's
  /// queue_callback). The reducer uses it to wait for its buckets.
  void queue_callback(std::function<void()> callback) { callbacks_.push_back(std::move(callback)); }
  const CallSite& site() const noexcept { return site_; }

  /// Called once by the owner of the pass, after the last gradient. A callback may queue another
  /// callback.
  void run_callbacks() {
    for (std::size_t i = 0; i < callbacks_.size(); ++i) callbacks_[i]();
  }

 private:
  CallSite site_;
  std::vector<std::function<void()>> callbacks_;
};

/// An operation on the tape. `parents` are the nodes that produced its inputs, null for inputs that
/// need no gradient.
class Node {
 public:
  Node(const char* name, std::vector<NodePtr> parents)
      : parents_(std::move(parents)), name_(name) {}
  virtual ~Node();

  const char* name() const noexcept { return name_; }
  const std::vector<NodePtr>& parents() const noexcept { return parents_; }
  /// The parameter of an AccumulateGrad node; null for every other node.
  virtual Parameter* parameter() const noexcept { return nullptr; }

  /// Computes the gradients of the inputs, one per parent (undefined where the parent is null),
  /// from the gradient of the output (undefined if the loss does not depend on the output). The
  /// node owns `grad_output` and, if it is the only tensor on its storage, may modify it in place
  /// and return it.
  virtual std::vector<Tensor> backward(Tensor grad_output, BackwardPass& pass) = 0;

 private:
  friend class Graph;
  friend class NodeSet;
  std::vector<NodePtr> parents_;
  const char* name_;
  std::uint64_t sequence_ = 0;
  std::size_t slot_ = 0;  // scratch index used by NodeSet during a traversal
};

/// The tape of one rank: records operations while gradients are enabled, and runs backward passes.
///
/// Backward order matches PyTorch: among the ready nodes, the most recently created one runs first,
/// and AccumulateGrad nodes run before all others (in the order in which their consumer returned
/// the gradients), so hooks fire as early as possible. If a node has several consumers, their
/// gradients are summed in the order in which the consumers ran.
///
/// A backward pass does not modify the tape, so it can be run again. A node or hook may start a
/// nested pass (reentrant checkpointing), which gets its own BackwardPass. All state lives in this
/// object and its nodes; none is thread-local, because simulated ranks share a thread.
class Graph {
 public:
  explicit Graph(Clock& clock) : clock_(&clock) {}

  bool grad_enabled() const noexcept { return grad_enabled_; }
  void set_grad_enabled(bool enabled) noexcept { grad_enabled_ = enabled; }

  Clock& clock() const noexcept { return *clock_; }

  /// The leaf variable of `parameter`. A parameter always gets the same AccumulateGrad node, and
  /// the graph keeps the parameter alive. A parameter that needs no gradient has no node.
  Variable leaf(const ParameterPtr& parameter);
  /// Treats these parameters as constants in the following forward passes, as if the model did not
  /// take the branch that uses them. Replaces the previous list.
  void leave_out(std::vector<const Parameter*> parameters) { left_out_ = std::move(parameters); }
  /// Records `node` as the producer of `data`. Drops the node if gradients are disabled or no
  /// parent needs a gradient.
  Variable record(Tensor data, NodePtr node);

  /// Runs backward from `root` (a scalar, with d root / d root = 1) or from several outputs with
  /// the given gradients. Accumulates into the parameters, runs their hooks, then the queued
  /// callbacks. Throws Error(kMisuse) if a root depends on no parameter or is not a scalar.
  void backward(const Variable& root,
                const CallSite& site = CallSite(__builtin_FILE(), __builtin_LINE()));
  void backward(const std::vector<Variable>& roots, const std::vector<Tensor>& gradients,
                const CallSite& site = CallSite(__builtin_FILE(), __builtin_LINE()));

  /// The parameters whose AccumulateGrad node is reachable from `outputs`, in unspecified order.
  std::vector<Parameter*> reachable_parameters(const std::vector<Variable>& outputs) const;

 private:
  void run_nodes(const std::vector<Variable>& roots, const std::vector<Tensor>& gradients,
                 BackwardPass& pass);

  Clock* clock_;
  bool grad_enabled_ = true;
  std::uint64_t next_sequence_ = 1;
  std::unordered_map<const Parameter*, NodePtr> leaves_;
  std::vector<const Parameter*> left_out_;
};

/// Disables gradients for a scope (torch.no_grad).
class NoGradGuard {
 public:
  explicit NoGradGuard(Graph& graph) : graph_(graph), before_(graph.grad_enabled()) {
    graph_.set_grad_enabled(false);
  }
  ~NoGradGuard() { graph_.set_grad_enabled(before_); }
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;

 private:
  Graph& graph_;
  bool before_;
};

}  // namespace gradsync
