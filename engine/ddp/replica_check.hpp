#pragma once

#include <string>
#include <vector>

#include "gradsync/autograd/parameter.hpp"
#include "gradsync/comm/process_group.hpp"
#include "gradsync/ddp/loop_position.hpp"

namespace gradsync {

/// Checks that all ranks train the same model: throws Error(kDesync) on every rank, naming the
/// first thing that differs, what it is on rank 0 and on the first rank where it is something else.
///
/// `description` says of a rank all that must be equal, one line a thing: each parameter with dtype
/// and shape, each buffer, each option on which the sequence of collectives depends.
///
/// Collectives where all is well are PyTorch's, so traces compare: an allgather of one int64 and a
/// broadcast of the parameters' sizes and strides. PyTorch gathers the number of parameters; here
/// the same 64 bits carry a hash of the description as well, so that every rank, also rank 0,
/// learns of any difference before it goes on. Only then do further collectives find out what
/// differs.
void check_replicas(ProcessGroup& group, const std::vector<ParameterPtr>& parameters,
                    const std::vector<std::string>& description, const LoopPosition& position);

/// "parameter layers.0.attn.in_proj_weight float32 [768, 256]"
std::string describe_tensor(const std::string& kind, const std::string& name, const Tensor& tensor);

}  // namespace gradsync
