#pragma once

#include <string>
#include <vector>

#include "gradsync/autograd/parameter.hpp"
#include "gradsync/comm/process_group.hpp"
#include "gradsync/ddp/loop_position.hpp"

namespace gradsync {

/// Checks that all ranks train the same model. Throws Error(kDesync) on every rank, naming the
/// first difference, its value on rank 0, and its value on the first rank that disagrees.
///
/// `description` lists everything that must be equal on all ranks, one line per item: each
/// parameter with dtype and shape, each buffer, each option that affects the sequence of
/// collectives.
///
/// If all ranks agree, the collectives are PyTorch's, so that traces are comparable: an allgather
/// of one int64 and a broadcast of the parameters' sizes and strides. PyTorch gathers the number of
/// parameters; here the same 64 bits also carry a hash of the description, so that every rank,
/// including rank 0, learns of any difference before it continues. Further collectives, to find the
/// difference, run only if the ranks disagree.
void check_replicas(ProcessGroup& group, const std::vector<ParameterPtr>& parameters,
                    const std::vector<std::string>& description, const LoopPosition& position);

/// "parameter layers.0.attn.in_proj_weight float32 [768, 256]"
std::string describe_tensor(const std::string& kind, const std::string& name, const Tensor& tensor);

}  // namespace gradsync
