#include "gradsync/testbed/loop/loop_observer.hpp"

namespace gradsync {

template <typename... Parameters, typename... Arguments>
void LoopObservers::inwards(void (LoopObserver::*point)(Parameters...),
                            const Arguments&... arguments) {
  for (LoopObserver* observer : observers_) (observer->*point)(arguments...);
}

template <typename... Parameters, typename... Arguments>
void LoopObservers::outwards(void (LoopObserver::*point)(Parameters...),
                             const Arguments&... arguments) {
  for (auto observer = observers_.rbegin(); observer != observers_.rend(); ++observer) {
    ((*observer)->*point)(arguments...);
  }
}

void LoopObservers::before_step(const LoopPosition& at) {
  inwards(&LoopObserver::before_step, at);
}

void LoopObservers::before_data(const LoopPosition& at) {
  inwards(&LoopObserver::before_data, at);
}

void LoopObservers::after_data(const LoopPosition& at, const Batch& batch) {
  outwards(&LoopObserver::after_data, at, batch);
}

void LoopObservers::before_forward(const LoopPosition& at) {
  inwards(&LoopObserver::before_forward, at);
}

void LoopObservers::after_forward(const LoopPosition& at, const Tensor& loss, bool reduces) {
  outwards(&LoopObserver::after_forward, at, loss, reduces);
}

void LoopObservers::before_backward(const LoopPosition& at) {
  inwards(&LoopObserver::before_backward, at);
}

void LoopObservers::after_backward(const LoopPosition& at, bool last) {
  outwards(&LoopObserver::after_backward, at, last);
}

void LoopObservers::before_optimizer(const LoopPosition& at) {
  inwards(&LoopObserver::before_optimizer, at);
}

void LoopObservers::after_clip(const LoopPosition& at, const std::optional<Clipping>& clipping) {
  outwards(&LoopObserver::after_clip, at, clipping);
}

void LoopObservers::after_optimizer(const LoopPosition& at) {
  outwards(&LoopObserver::after_optimizer, at);
}

void LoopObservers::after_step(const LoopPosition& at) {
  outwards(&LoopObserver::after_step, at);
}

void LoopObservers::step_skipped(const LoopPosition& at, const std::string& reason) {
  outwards(&LoopObserver::step_skipped, at, reason);
}

void LoopObservers::loop_left(const LoopPosition& at, const std::string& reason) {
  outwards(&LoopObserver::loop_left, at, reason);
}

void LoopObservers::before_join() {
  inwards(&LoopObserver::before_join);
}

void LoopObservers::after_epoch(const LoopPosition& last) {
  outwards(&LoopObserver::after_epoch, last);
}

void LoopObservers::after_training(const LoopPosition& last) {
  outwards(&LoopObserver::after_training, last);
}

}  // namespace gradsync
