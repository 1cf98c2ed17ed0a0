#include "gradsync/autograd/graph.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

/// The sink of a parameter's gradients.
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(ParameterPtr parameter)
      : Node("AccumulateGrad", {}), parameter_(std::move(parameter)) {}

  Parameter* parameter() const noexcept override { return parameter_.get(); }

  std::vector<Tensor> backward(Tensor grad_output, BackwardPass& pass) override {
    parameter_->accumulate(std::move(grad_output), pass);
    return {};
  }

 private:
  ParameterPtr parameter_;
};

void require_roots(const std::vector<Variable>& roots, std::size_t gradients) {
  if (roots.size() != gradients) {
    throw Error(ErrorCode::kInternal, "backward was given " + std::to_string(roots.size()) +
                                          " outputs and " + std::to_string(gradients) +
                                          " gradients");
  }
  for (const Variable& root : roots) {
    if (!root.node) {
      throw Error(ErrorCode::kMisuse,
                  "backward was called on an output that depends on no parameter that requires a "
                  "gradient, or that was computed while gradients were off");
    }
  }
}

}  // namespace

/// The set of nodes visited by one traversal, numbered from 0. Avoids hashing: each node stores its
/// slot in the innermost traversal and is a member if that slot points back to it. Traversals nest
/// (a hook may run another backward pass), so the previous slots are restored at the end.
class NodeSet {
 public:
  NodeSet() = default;
  ~NodeSet() {
    for (const Member& member : members_) member.node->slot_ = member.outer_slot;
  }
  NodeSet(const NodeSet&) = delete;
  NodeSet& operator=(const NodeSet&) = delete;

  std::size_t size() const noexcept { return members_.size(); }
  Node& operator[](std::size_t slot) const { return *members_[slot].node; }

  bool contains(const Node& node) const {
    return node.slot_ < members_.size() && members_[node.slot_].node == &node;
  }
  static std::size_t slot_of(const Node& member) { return member.slot_; }

  /// Inserts a node that is not a member yet.
  void insert(Node& node) {
    members_.push_back({&node, node.slot_});
    node.slot_ = members_.size() - 1;
  }

  /// Inserts `node` and everything it depends on; calls `on_edge(slot)` for each edge, with the
  /// slot of the node that the edge points to.
  template <typename OnEdge>
  void insert_reachable(Node& node, OnEdge on_edge) {
    if (contains(node)) return;
    std::size_t next = members_.size();
    insert(node);
    for (; next < members_.size(); ++next) {
      for (const NodePtr& parent : members_[next].node->parents()) {
        if (!parent) continue;
        if (!contains(*parent)) insert(*parent);
        on_edge(slot_of(*parent));
      }
    }
  }

 private:
  struct Member {
    Node* node;
    std::size_t outer_slot;
  };
  std::vector<Member> members_;
};

namespace {

/// A node whose gradient is complete. `arrival` breaks ties of equal priority in arrival order.
struct ReadyNode {
  std::uint64_t priority;
  std::size_t arrival;
  std::size_t slot;

  bool operator<(const ReadyNode& other) const {
    return priority != other.priority ? priority < other.priority : arrival > other.arrival;
  }
};

/// sum += gradient, without modifying a tensor that others can see.
void add_gradient(Tensor& sum, Tensor gradient) {
  if (!gradient.defined()) return;
  if (!sum.defined()) {
    sum = std::move(gradient);
    return;
  }
  if (!sum.unique()) {
    // Addition is commutative bit for bit, so the sum may go into either tensor.
    if (!gradient.unique()) gradient = gradient.clone();
    std::swap(sum, gradient);
  }
  sum.device().add(sum, gradient);
}

}  // namespace

Node::~Node() {
  // A tape of thousands of nodes is a chain of shared pointers. A recursive release would overflow
  // the small stacks of simulated ranks, so the chain is released in a loop.
  std::vector<NodePtr> released = std::move(parents_);
  while (!released.empty()) {
    const NodePtr node = std::move(released.back());
    released.pop_back();
    if (!node || node.use_count() > 1) continue;
    std::move(node->parents_.begin(), node->parents_.end(), std::back_inserter(released));
    node->parents_.clear();
  }
}

Variable Graph::leaf(const ParameterPtr& parameter) {
  const bool is_constant =
      !parameter->requires_grad() ||
      std::find(left_out_.begin(), left_out_.end(), parameter.get()) != left_out_.end();
  if (is_constant) return {parameter->data, nullptr};
  NodePtr& node = leaves_[parameter.get()];
  if (!node) node = std::make_shared<AccumulateGrad>(parameter);
  return {parameter->data, node};
}

Variable Graph::record(Tensor data, NodePtr node) {
  const auto& parents = node->parents();
  const bool needed = grad_enabled_ && std::any_of(parents.begin(), parents.end(),
                                                   [](const NodePtr& p) { return p != nullptr; });
  if (!needed) return {std::move(data), nullptr};
  node->sequence_ = next_sequence_++;
  return {std::move(data), std::move(node)};
}

void Graph::backward(const Variable& root, const CallSite& site) {
  if (root.data.numel() != 1) {
    throw Error(ErrorCode::kMisuse,
                "backward starts from a scalar loss, but the output has the shape " +
                    to_string(root.data.shape()) + "; pass the gradient of the output as well");
  }
  Tensor one = root.data.empty_like();
  one.device().fill(one, 1);
  backward(std::vector<Variable>{root}, {std::move(one)}, site);
}

void Graph::run_nodes(const std::vector<Variable>& roots, const std::vector<Tensor>& gradients,
                      BackwardPass& pass) {
  require_roots(roots, gradients.size());
  NodeSet nodes;
  std::vector<std::uint32_t> waits_for;  // by slot: consumers that have not run yet
  const auto count_edge = [&waits_for](std::size_t slot) {
    if (slot >= waits_for.size()) waits_for.resize(slot + 1);
    ++waits_for[slot];
  };
  for (const Variable& root : roots) {
    nodes.insert_reachable(*root.node, count_edge);
    count_edge(NodeSet::slot_of(*root.node));  // the root gradient given by the caller
  }

  std::vector<Tensor> sums(nodes.size());  // by slot: the gradients so far
  std::vector<ReadyNode> ready;            // heap
  std::size_t arrivals = 0;
  const auto make_ready = [&](std::size_t slot) {
    const Node& node = nodes[slot];
    const bool is_leaf = node.parameter() != nullptr;
    const std::uint64_t priority =
        is_leaf ? std::numeric_limits<std::uint64_t>::max() : node.sequence_;
    ready.push_back({priority, arrivals++, slot});
    std::push_heap(ready.begin(), ready.end());
  };

  const auto deliver = [&](const NodePtr& node, Tensor gradient) {
    const std::size_t slot = NodeSet::slot_of(*node);
    add_gradient(sums[slot], std::move(gradient));
    if (--waits_for[slot] == 0) make_ready(slot);
  };
  for (std::size_t i = 0; i < roots.size(); ++i) deliver(roots[i].node, gradients[i]);

  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end());
    const std::size_t slot = ready.back().slot;
    ready.pop_back();

    Node& node = nodes[slot];
    std::vector<Tensor> inputs = node.backward(std::move(sums[slot]), pass);
    const auto& parents = node.parents();
    if (inputs.size() != parents.size()) {
      throw Error(ErrorCode::kInternal, std::string(node.name()) + " has " +
                                            std::to_string(parents.size()) + " inputs but gave " +
                                            std::to_string(inputs.size()) + " gradients");
    }
    for (std::size_t i = 0; i < parents.size(); ++i) {
      if (parents[i]) deliver(parents[i], std::move(inputs[i]));
    }
  }
}

void Graph::backward(const std::vector<Variable>& roots, const std::vector<Tensor>& gradients,
                     const CallSite& site) {
  BackwardPass pass(site);
  // Free the traversal state before the callbacks run: they wait for the network, and in the
  // simulator all ranks of the job wait at the same time.
  run_nodes(roots, gradients, pass);
  pass.run_callbacks();
}

std::vector<Parameter*> Graph::reachable_parameters(const std::vector<Variable>& outputs) const {
  NodeSet nodes;
  for (const Variable& output : outputs) {
    if (output.node) nodes.insert_reachable(*output.node, [](std::size_t) {});
  }
  std::vector<Parameter*> parameters;
  for (std::size_t slot = 0; slot < nodes.size(); ++slot) {
    if (Parameter* parameter = nodes[slot].parameter()) parameters.push_back(parameter);
  }
  return parameters;
}

}  // namespace gradsync
