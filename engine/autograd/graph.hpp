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

/// A tensor in a computation. `node` is the operation that made it, null for constants and while
/// gradients are off.
struct Variable {
  Tensor data;
  NodePtr node;
};

/// One backward pass, as hooks see it: over the tape (Graph::backward), or of an autograd that a
/// program brings along.
class BackwardPass {
 public:
  /// `site`: where the pass was started.
  explicit BackwardPass(const CallSite& site) : site_(site) {}

  /// Runs `callback` once, after the last node of this pass, on the rank's thread (PyTorch's
  /// queue_callback). The reducer waits for its buckets there.
  void queue_callback(std::function<void()> callback) { callbacks_.push_back(std::move(callback)); }
  const CallSite& site() const noexcept { return site_; }

  /// Whoever runs the pass calls it once, after the last gradient; a callback may queue another.
  void run_callbacks() {
    for (std::size_t i = 0; i < callbacks_.size(); ++i) callbacks_[i]();
  }

 private:
  CallSite site_;
  std::vector<std::function<void()>> callbacks_;
};

/// An operation on the tape. `parents` are the nodes of its inputs, null where an input needs no
/// gradient.
class Node {
 public:
  Node(const char* name, std::vector<NodePtr> parents)
      : parents_(std::move(parents)), name_(name) {}
  virtual ~Node();

  const char* name() const noexcept { return name_; }
  const std::vector<NodePtr>& parents() const noexcept { return parents_; }
  /// The parameter of an AccumulateGrad node; null for every other node.
  virtual Parameter* parameter() const noexcept { return nullptr; }

  /// Gradients of the inputs, one for each parent (undefined where the parent is null), from the
  /// gradient of the output, which is undefined if the output had no use in the loss. The node owns
  /// `grad_output`: if it is the only tensor over its storage, it may be changed and returned.
  virtual std::vector<Tensor> backward(Tensor grad_output, BackwardPass& pass) = 0;

 private:
  friend class Graph;
  friend class NodeSet;
  std::vector<NodePtr> parents_;
  const char* name_;
  std::uint64_t sequence_ = 0;
  std::size_t slot_ = 0;  // of the traversal in progress: see NodeSet
};

/// The tape of one rank: records operations while gradients are on, and runs backward passes.
///
/// The order of a backward pass is PyTorch's: among the nodes that are ready, the one created last
/// runs first, and AccumulateGrad nodes run before all others (in the order of the gradients that
/// their consumer returned), so hooks fire as early as possible. Gradients of a node with several
/// consumers are added in the order in which the consumers ran.
///
/// A backward pass changes nothing on the tape: it may be run again, and a node or hook may run
/// another one (reentrant checkpointing), which has a BackwardPass of its own. All state is in this
/// object and in its nodes (none is thread-local): ranks of a simulation share a thread.
class Graph {
 public:
  explicit Graph(Clock& clock) : clock_(&clock) {}

  bool grad_enabled() const noexcept { return grad_enabled_; }
  void set_grad_enabled(bool enabled) noexcept { grad_enabled_ = enabled; }

  Clock& clock() const noexcept { return *clock_; }

  /// A leaf: the same AccumulateGrad node each time for the same parameter, which the graph keeps
  /// alive; no node for a parameter that needs no gradient.
  Variable leaf(const ParameterPtr& parameter);
  /// The passes that follow do not use these parameters: their leaves are constants, as in a branch
  /// of the model that is not taken. Replaces what was left out before.
  void leave_out(std::vector<const Parameter*> parameters) { left_out_ = std::move(parameters); }
  /// Enters `node` as the maker of `data` (or drops it while gradients are off or if no parent
  /// needs a gradient).
  Variable record(Tensor data, NodePtr node);

  /// Runs backward from `root` (a scalar: d root / d root = 1), or from several outputs with the
  /// given gradients. Gradients accumulate into the parameters; hooks run; then the callbacks.
  /// Throws Error(kMisuse) for a root that depends on no parameter or is not a scalar.
  void backward(const Variable& root,
                const CallSite& site = CallSite(__builtin_FILE(), __builtin_LINE()));
  void backward(const std::vector<Variable>& roots, const std::vector<Tensor>& gradients,
                const CallSite& site = CallSite(__builtin_FILE(), __builtin_LINE()));

  /// The parameters whose AccumulateGrad node can be reached from `outputs`, in no given order.
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

/// Switches gradients off for a scope (torch.no_grad).
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
