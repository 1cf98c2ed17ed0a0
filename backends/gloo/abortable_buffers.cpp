#include "gradsync/backends/gloo/abortable_buffers.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <gloo/common/error.h>
#include <gloo/transport/pair.h>

namespace gradsync {
namespace {

using gloo::transport::UnboundBuffer;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Reason = TransferError::Reason;

class AbortableBuffer final : public UnboundBuffer {
 public:
  AbortableBuffer(std::unique_ptr<UnboundBuffer> inner, std::shared_ptr<BufferRegistry> registry,
                  GlooDeadline deadline)
      : UnboundBuffer(inner->ptr, inner->size),
        inner_(std::move(inner)),
        registry_(std::move(registry)),
        deadline_(deadline) {
    registry_->add(*inner_);
  }
  ~AbortableBuffer() override { registry_->remove(*inner_); }

  bool waitRecv(int* rank, milliseconds timeout) override {
    return wait(receiving_from_, "receive from", timeout,
                [&](milliseconds left) { return inner_->waitRecv(rank, left); });
  }
  bool waitSend(int* rank, milliseconds timeout) override {
    return wait(sending_to_, "send to", timeout,
                [&](milliseconds left) { return inner_->waitSend(rank, left); });
  }
  void abortWaitRecv() override { inner_->abortWaitRecv(); }
  void abortWaitSend() override { inner_->abortWaitSend(); }

  void send(int to, std::uint64_t slot, std::size_t offset, std::size_t nbytes) override {
    sending_to_ = to;
    post(to, [&] { inner_->send(to, slot, offset, nbytes); });
  }
  void recv(int from, std::uint64_t slot, std::size_t offset, std::size_t nbytes) override {
    receiving_from_ = from;
    post(from, [&] { inner_->recv(from, slot, offset, nbytes); });
  }
  void recv(std::vector<int> from, std::uint64_t slot, std::size_t offset,
            std::size_t nbytes) override {
    receiving_from_ = -1;
    post(-1, [&] { inner_->recv(std::move(from), slot, offset, nbytes); });
  }

 private:
  template <typename Wait>
  bool wait(int peer, const char* what, milliseconds timeout, const Wait& inner_wait) {
    const auto begin = steady_clock::now();
    auto left = std::chrono::duration_cast<milliseconds>(deadline_ - begin);
    if (timeout != gloo::transport::kUnsetTimeout) left = std::min(left, timeout);
    // Gloo waits treat zero and less as "poll"; an expired deadline ends here too.
    left = std::max(left, milliseconds(1));
    try {
      if (inner_wait(left)) return true;
    } catch (const gloo::Exception& e) {
      if (registry_->aborted()) throw aborted(peer);
      const bool timed_out = steady_clock::now() - begin >= left;
      throw TransferError(timed_out ? Reason::kTimeout : Reason::kConnection, peer,
                          fmt::format("{} rank {}: {}", what, peer, e.what()));
    }
    throw aborted(peer);
  }

  template <typename Post>
  void post(int peer, const Post& inner_post) {
    if (registry_->aborted()) throw aborted(peer);
    try {
      inner_post();
    } catch (const gloo::Exception& e) {
      throw TransferError(Reason::kConnection, peer, e.what());
    }
  }

  static TransferError aborted(int peer) {
    return TransferError(Reason::kAborted, peer, "ended because another part of the job failed");
  }

  std::unique_ptr<UnboundBuffer> inner_;
  std::shared_ptr<BufferRegistry> registry_;
  GlooDeadline deadline_;
  int sending_to_ = -1;
  int receiving_from_ = -1;
};

/// Creates the buffers, over the connections of the wrapped context.
class AbortableTransport final : public gloo::transport::Context {
 public:
  AbortableTransport(std::shared_ptr<gloo::Context> connected,
                     std::shared_ptr<BufferRegistry> registry, GlooDeadline deadline)
      : gloo::transport::Context(connected->rank, connected->size),
        connected_(std::move(connected)),
        registry_(std::move(registry)),
        deadline_(deadline) {}

  std::unique_ptr<gloo::transport::Pair>& getPair(int peer) override {
    return connected_->getPair(peer);
  }
  std::unique_ptr<gloo::transport::Pair>& createPair(int) override {
    throw std::logic_error("an abortable context connects nothing");
  }
  std::unique_ptr<UnboundBuffer> createUnboundBuffer(void* data, std::size_t nbytes) override {
    return std::make_unique<AbortableBuffer>(connected_->createUnboundBuffer(data, nbytes),
                                             registry_, deadline_);
  }

 private:
  std::shared_ptr<gloo::Context> connected_;
  std::shared_ptr<BufferRegistry> registry_;
  GlooDeadline deadline_;
};

class AbortableContext final : public gloo::Context {
 public:
  AbortableContext(const std::shared_ptr<gloo::Context>& connected,
                   std::shared_ptr<BufferRegistry> registry, GlooDeadline deadline)
      : gloo::Context(connected->rank, connected->size) {
    setTimeout(connected->getTimeout());
    transportContext_ =
        std::make_shared<AbortableTransport>(connected, std::move(registry), deadline);
  }
};

}  // namespace

void BufferRegistry::add(UnboundBuffer& buffer) {
  const std::lock_guard lock(mutex_);
  buffers_.insert(&buffer);
}

void BufferRegistry::remove(UnboundBuffer& buffer) {
  const std::lock_guard lock(mutex_);
  buffers_.erase(&buffer);
}

void BufferRegistry::abort_all() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  for (UnboundBuffer* buffer : buffers_) {
    buffer->abortWaitRecv();
    buffer->abortWaitSend();
  }
}

bool BufferRegistry::aborted() const {
  const std::lock_guard lock(mutex_);
  return aborted_;
}

std::shared_ptr<gloo::Context> make_abortable_context(std::shared_ptr<gloo::Context> connected,
                                                      std::shared_ptr<BufferRegistry> registry,
                                                      GlooDeadline deadline) {
  return std::make_shared<AbortableContext>(connected, std::move(registry), deadline);
}

}  // namespace gradsync
