#include "gradsync/backends/gloo/gloo_messages.hpp"

#include <gloo/alltoall.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "gradsync/backends/gloo/signature_exchange.hpp"
#include "gradsync/comm/signature.hpp"

namespace gradsync {
namespace {

/// What a message of a channel carries. The answer goes against the direction of the channel.
enum class Part : std::uint64_t { kSignature, kAnswer, kData };

/// Gloo's own slots are below 2^48, and those of SignatureExchange have bit 62.
std::uint64_t slot(std::int64_t sequence, Part part) {
  return (std::uint64_t{1} << 61) | static_cast<std::uint64_t>(sequence) << 2 |
         static_cast<std::uint64_t>(part);
}

}  // namespace

std::optional<std::string> exchange_with_peer(const std::shared_ptr<gloo::Context>& context,
                                              const CollectiveRecord& record,
                                              const std::string& signature) {
  const int peer = record.root;
  const bool sends = record.op == OpType::kSend;
  SignatureMessage outgoing(signature), incoming;
  const auto out = context->createUnboundBuffer(&outgoing, sizeof(outgoing));
  const auto in = context->createUnboundBuffer(&incoming, sizeof(incoming));
  in->recv(peer, slot(record.sequence, sends ? Part::kAnswer : Part::kSignature));
  out->send(peer, slot(record.sequence, sends ? Part::kSignature : Part::kAnswer));
  in->waitRecv();
  out->waitSend();
  const std::string theirs = incoming.str();
  if (signatures_match(outgoing.str(), theirs)) return std::nullopt;
  return theirs;
}

void gloo_send(const std::shared_ptr<gloo::Context>& context, std::int64_t sequence,
               const Tensor& tensor, int to) {
  if (tensor.numel() == 0) return;
  const auto buffer =
      context->createUnboundBuffer(tensor.data(), static_cast<std::size_t>(tensor.nbytes()));
  buffer->send(to, slot(sequence, Part::kData));
  buffer->waitSend();
}

void gloo_recv(const std::shared_ptr<gloo::Context>& context, std::int64_t sequence,
               const Tensor& tensor, int from) {
  if (tensor.numel() == 0) return;
  const auto buffer =
      context->createUnboundBuffer(tensor.data(), static_cast<std::size_t>(tensor.nbytes()));
  buffer->recv(from, slot(sequence, Part::kData));
  buffer->waitRecv();
}

std::optional<SplitMismatch> find_split_mismatch(const std::shared_ptr<gloo::Context>& context,
                                                 std::uint32_t tag, const AlltoallSplits& splits) {
  std::vector<std::int64_t> sent(splits.output.size());
  std::vector<std::int64_t> input = splits.input;
  gloo::AlltoallOptions options(context);
  options.setInput(input.data(), input.size());
  options.setOutput(sent.data(), sent.size());
  options.setTag(tag);
  gloo::alltoall(options);
  for (std::size_t sender = 0; sender < sent.size(); ++sender) {
    if (sent[sender] != splits.output[sender]) {
      return SplitMismatch{static_cast<int>(sender), sent[sender], splits.output[sender]};
    }
  }
  return std::nullopt;
}

}  // namespace gradsync
