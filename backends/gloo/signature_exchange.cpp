#include "gradsync/backends/gloo/signature_exchange.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "gradsync/backends/store/stable_hash.hpp"

namespace gradsync {
namespace {

/// Gloo's own slots are below 2^48 (gloo/types.h).
std::uint64_t slot(std::int64_t sequence) {
  return (std::uint64_t{1} << 62) | static_cast<std::uint64_t>(sequence);
}

/// Shortens a text to fit into a message, such that different texts stay different.
std::string shorten(const std::string& text, std::size_t limit) {
  if (text.size() <= limit) return text;
  const std::string mark = fmt::format("... [{:08x}]", stable_hash(text));
  return text.substr(0, limit - mark.size()) + mark;
}

}  // namespace

SignatureMessage::SignatureMessage(const std::string& signature) {
  const std::string shortened = shorten(signature, kMaxText);
  length_ = static_cast<std::uint16_t>(shortened.size());
  std::memcpy(text_.data(), shortened.data(), shortened.size());
}

std::string SignatureMessage::str() const {
  return {text_.data(), std::min<std::size_t>(length_, kMaxText)};
}

SignatureExchange::SignatureExchange(std::shared_ptr<gloo::Context> connected,
                                     std::shared_ptr<BufferRegistry> registry)
    : left_((connected->rank + connected->size - 1) % connected->size),
      right_((connected->rank + 1) % connected->size) {
  const auto context = make_abortable_context(connected, std::move(registry), GlooDeadline::max());
  for (Entry& e : window_) {
    e.send_buffer = context->createUnboundBuffer(&e.outgoing, sizeof(SignatureMessage));
    e.receive_buffer = context->createUnboundBuffer(&e.incoming, sizeof(SignatureMessage));
  }
  for (std::size_t i = 0; i < kWindow; ++i) post_receive(static_cast<std::int64_t>(i));
}

void SignatureExchange::post_receive(std::int64_t sequence) {
  entry(sequence).receive_buffer->recv(left_, slot(sequence));
}

std::optional<std::string> SignatureExchange::exchange(std::int64_t sequence,
                                                       const std::string& signature,
                                                       std::chrono::milliseconds timeout) {
  Entry& e = entry(sequence);
  if (e.sent) e.send_buffer->waitSend(timeout);  // the message sent one window ago
  e.outgoing = SignatureMessage(signature);
  e.send_buffer->send(right_, slot(sequence));
  e.sent = true;

  e.receive_buffer->waitRecv(timeout);
  std::string theirs = e.incoming.str();
  post_receive(sequence + static_cast<std::int64_t>(kWindow));
  if (theirs == e.outgoing.str()) return std::nullopt;
  return theirs;
}

}  // namespace gradsync
