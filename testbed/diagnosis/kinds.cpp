#include "gradsync/testbed/diagnosis/kinds.hpp"

#include <array>
#include <cstddef>

namespace gradsync {
namespace {

using enum DiagnosisKind;

// tools/hang_table.py parses these rows: a row has five values, the last four of which are string
// literals (adjacent ones are concatenated).
constexpr std::array kRows{
    KindRow{kStartFailed, "start_failed", "K22", "A rank failed before all ranks had met.",
            "fix the problem named in the error, and start the job again"},
    KindRow{kNotJoined, "not_joined", "K22", "A rank never came to the rendezvous.",
            "start every rank, all with the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE, and look "
            "at the output of those that did not come"},
    KindRow{kUnreachable, "unreachable", "K22",
            "A rank joined and published an address that the others cannot reach.",
            "set the network interface on that rank's node (gloo.interface, GLOO_SOCKET_IFNAME) to "
            "the one that the other nodes reach, not lo, a bridge or a VPN"},
    KindRow{kDuplicateDevice, "duplicate_device", "K21", "Two ranks use one device.",
            "take the device from LOCAL_RANK, and set it before the first collective and before "
            "DDP"},
    KindRow{kGroupCreation, "group_creation", "K18",
            "Only some ranks called new_group, or each for a group of its own.",
            "call new_group on every rank, members or not, in the same order"},
    KindRow{kParameterCount, "parameter_count", "K04",
            "The ranks' models do not have the same number of parameters.",
            "build the model from the same configuration on every rank, before anything that "
            "depends on the rank"},
    KindRow{kParameterOrder, "parameter_order", "K04",
            "The ranks registered the same parameters in different orders.",
            "register the parameters in the same order on every rank (no iteration over a set, no "
            "lazy layer that depends on the data): gradients are summed by position"},
    KindRow{kParameterShape, "parameter_shape", "K04",
            "A parameter does not have the same shape on all ranks.",
            "build the model from the same configuration on every rank, before anything that "
            "depends on the rank"},
    KindRow{kParameterName, "parameter_name", "K04",
            "The parameters at one position have different names.",
            "build the model from the same configuration on every rank, before anything that "
            "depends on the rank"},

    KindRow{kUnevenShards, "uneven_shards", "K01",
            "A rank ran out of data before the others (K02 where the data are streams).",
            "give every rank the same number of steps: pad, drop the rest, or train inside Join"},
    KindRow{kResumeDiffers, "resume_differs", "K25", "The ranks did not start at the same step.",
            "load the same checkpoint on every rank, or on rank 0 and broadcast what it says: "
            "step, epoch, optimizer state"},
    KindRow{kLeftLoop, "left_loop", "K07", "A rank left the training loop before the others.",
            "reduce the decision (an all-reduce with max of the flag, or rank 0's by broadcast) "
            "before any rank breaks"},
    KindRow{kSkippedStep, "skipped_step", "K08",
            "A rank went on to the next batch without the collectives of a step.",
            "decide together: reduce the flag (max) and skip on every rank, or run backward on a "
            "loss times 0"},
    KindRow{kSwallowedException, "swallowed_exception", "K06",
            "A rank caught an exception and went on with the next batch.",
            "let the exception end the rank, or tell all ranks to skip the step (an all-reduce of "
            "a flag) before any rank goes on"},
    KindRow{kNoSyncDiffers, "no_sync_differs", "K11",
            "A rank kept gradients local (no_sync) that the others reduced.",
            "the last batch of a step must be reduced on every rank: decide about no_sync by the "
            "batch's number alone, and put its forward inside the same context"},
    KindRow{kOutOfStep, "out_of_step", "K08",
            "A rank was a step ahead of the others before the records begin.",
            "give the flight recorder more room (output.flight_recorder_size), or keep the records "
            "of all collectives (events.jsonl), and run the job again"},

    KindRow{kExtraCollective, "extra_collective", "K05",
            "A rank issues one collective more than the others.",
            "issue it on every rank, or on none"},
    KindRow{kMissingCollective, "missing_collective", "K05",
            "A rank leaves out a collective that the others issue.",
            "issue it on every rank, also where there is nothing to say"},
    KindRow{kDifferentCollectives, "different_collectives", "K05",
            "The ranks issue different collectives of the program's own.",
            "issue these collectives on every rank, in one order that does not depend on the "
            "rank's data (sort the keys)"},
    KindRow{kDifferentCallSites, "different_call_sites", "K05",
            "Equal collectives were issued at different places of the program.",
            "issue it at one place on every rank; where two branches do mean the same quantity, "
            "nothing is wrong"},
    KindRow{kPayloadDiffers, "payload_differs", "K23",
            "A collective does not have the same operation, size, type or root on all ranks.",
            "give the collective the same operation, element count, type, root and reduction on "
            "every rank"},
    KindRow{kMismatch, "mismatch", "",
            "A comparison found that ranks differ, and the records do not show where it began.",
            "fix the problem named in the error"},

    KindRow{kError, "error", "K06",
            "A rank failed with its own error, and the other ranks failed because of it.",
            "fix the problem named in the first error"},
    KindRow{kRankDied, "rank_died", "K06", "A rank's process ended without a word.",
            "find out what ended the process: the kernel's log names the out-of-memory killer, a "
            "scheduler's log its own kills; signals such as SIGSEGV are a defect in the program"},
    KindRow{kUnusedParameters, "unused_parameters", "K03",
            "Parameters got no gradient in a step, so their bucket was never complete.",
            "set ddp.find_unused_parameters to true, or add 0 * sum(p) of these parameters to the "
            "loss, or let all ranks take the same branch"},
    KindRow{kLossNotAttached, "loss_not_attached", "K03",
            "The loss depends on no parameter, so backward has nothing to reduce.",
            "keep the loss attached where there is nothing to learn from: add 0 * sum(p) of the "
            "parameters, or a forward pass times 0, instead of a constant"},
    KindRow{kReadyTwice, "ready_twice", "K26",
            "A parameter got two gradients in one backward pass.",
            "use the parameter once in a forward pass, or a checkpoint that is not reentrant; "
            "where the graph is the same in every step set ddp.static_graph to true"},
    KindRow{kStaticGraphChanged, "static_graph_changed", "K12",
            "With static_graph, a step used other parameters than the first.",
            "set ddp.static_graph to false and ddp.find_unused_parameters to true"},

    KindRow{kGroupCycle, "group_cycle", "K17",
            "Ranks wait for each other in a circle over several process groups.",
            "issue the collectives of all groups in one order on every rank, or wait for none "
            "before the other is issued"},
    KindRow{kDeviceSlots, "device_slots", "K17",
            "Collectives of several communicators hold the devices' room for each other.",
            "let the collectives of one communicator be over before those of the next are issued "
            "(wait, or a dependency between their streams), or have fewer under way than the "
            "device has room for"},
    KindRow{kSlowSection, "slow_section", "K14",
            "A rank was at work of its own for longer than the timeout: slow, not stuck.",
            "raise timeout above what the section takes, move that work off the critical path, or "
            "give it a group with a longer timeout"},
    KindRow{kLateRank, "late_rank", "K14",
            "A rank came to a collective after the others had given up: slow, not stuck.",
            "raise timeout above what the slowest rank takes between two collectives, or find what "
            "holds it up (trace.json shows the phases of each step)"},
    KindRow{kStalledLoader, "stalled_loader", "K19",
            "A rank has not come back from its data loader.",
            "look at that rank's loader: workers that were forked while a lock was held, a file "
            "system that does not answer; num_workers 0 shows whether it is the workers"},
    KindRow{kStalledCompute, "stalled_compute", "K16",
            "A rank has not come back from its computation.",
            "look at that rank's device and library: a kernel that does not return, a lost "
            "completion; the program's logic is the same on all ranks up to here"},
    KindRow{kStalledRank, "stalled_rank", "K16",
            "A rank stands still outside its loader and its computation.",
            "look at that rank's process (is it stopped?) and its host"},
    KindRow{kNetwork, "network", "K16", "All ranks are inside one collective, which does not end.",
            "look at links and hosts, and at what the timeout allows for this size"},

    KindRow{kLossScaleDiffers, "loss_scale_differs", "K09",
            "The loss scale is not the same on all ranks.",
            "share the scale: reduce found_inf over the ranks and let one GradScaler state hold "
            "for all"},
    KindRow{kClipDiffers, "clip_differs", "K09",
            "Equal gradients were clipped by different factors.",
            "clip after the reduction, with the same limit on every rank"},
    KindRow{kLearningRateDiffers, "learning_rate_differs", "K25",
            "The learning rate is not the same on all ranks.",
            "reduce what a scheduler decides by (the validation loss), or let rank 0 decide and "
            "broadcast"},
    KindRow{kReductionStopped, "reduction_stopped", "K11",
            "No batch of a step was reduced on any rank.",
            "reduce the last micro step of every step; where no_sync and static_graph are "
            "combined, look at the number of reductions a step"},
    KindRow{kLastBatchLocal, "last_batch_local", "K11",
            "The last batch of a step was kept local on all ranks.",
            "reduce the last micro step and keep the others local: "
            "(i + 1) % accumulate_steps == 0, with the forward inside no_sync as well"},
    KindRow{kParameterOutsideDdp, "parameter_outside_ddp", "K24",
            "Parameters are trained with gradients that no bucket holds.",
            "make DDP after the last change of the model's parameters, and do not list them in "
            "ddp.params_and_buffers_to_ignore"},
    KindRow{kParametersDiffer, "parameters_differ", "",
            "The ranks' parameters differ, and no ingredient of the update says why.",
            "look for what only those ranks do between the all-reduce and the update: gradients "
            "that are changed, a kernel that is not deterministic, a parameter that no bucket "
            "holds"},
    KindRow{kBuffersDiffer, "buffers_differ", "K20",
            "Buffers differ between ranks while all parameters are equal.",
            "set ddp.broadcast_buffers to true, or synchronise the moments themselves "
            "(SyncBatchNorm)"},
    KindRow{kNotANumber, "not_a_number", "K08",
            "A rank's loss was not finite, and the all-reduce gave it to every rank.",
            "reduce a flag (max) of whether the loss is finite and skip the update on every rank, "
            "as GradScaler does; skipping on one rank alone puts the ranks out of step"},
    KindRow{kNormReducedTwice, "norm_reduced_twice", "K09",
            "The clip went by a norm that was summed over ranks a second time.",
            "take the norm of the gradients as backward leaves them: DDP has reduced them, so "
            "every rank finds the same and nothing is to be summed"},
    KindRow{kUnscaledTwice, "unscaled_twice", "K09",
            "Gradients were divided by the loss scale more than once.",
            "unscale and clip once a step, after the micro step that is reduced"},
    KindRow{kClippedBeforeUnscale, "clipped_before_unscale", "K09",
            "Gradients were clipped while they were still scaled.",
            "divide by the loss scale first (GradScaler.unscale_), then clip"},
    KindRow{kSamplesOverlap, "samples_overlap", "K10",
            "Ranks draw samples that other ranks draw too.",
            "give the sampler one seed, and the same epoch, on every rank"},
    KindRow{kSamplesNotSharded, "samples_not_sharded", "K10",
            "Ranks draw the same samples in the same order.",
            "deal each rank a shard of its own: num_replicas and rank of the sampler, "
            "split_dataset_by_node for a stream"},
    KindRow{kSameOrderEveryEpoch, "same_order_every_epoch", "K10",
            "Every epoch has the order of the first.",
            "call sampler.set_epoch(epoch) on every rank (set sampler.set_epoch to true)"},
    KindRow{kUnevenBatches, "uneven_batches", "K13",
            "Batches of different sizes count alike in the mean, so their samples do not.",
            "give every rank the same number of samples in a step (sampler.pad or "
            "sampler.drop_last), or weigh each rank's loss by world size * its samples / all "
            "samples"},

    KindRow{kStraggler, "straggler", "K15",
            "One rank comes last to nearly every reduction, and the others wait for it.",
            "find what holds that rank up (trace.json shows the phases)"},
    KindRow{kSamplesPadded, "samples_padded", "K10",
            "The sampler repeated samples so that all ranks take the same number of steps.",
            "nothing for a training; in an evaluation leave out the draws behind the data set's "
            "size, or set sampler.pad to false where no collective depends on equal steps"},
    KindRow{kNothingFound, "nothing_found", "",
            "Nothing is wrong with what there is, and evidence is missing.",
            "look for the files that are missing: each rank leaves its own"},
    KindRow{kUnknown, "unknown", "", "The evidence says who waits, but not why.",
            "the records do not show the cause; flight/rank-N.json holds the last collectives of "
            "each rank"},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::size_t>(kRows[i].kind) != i) return false;
  }
  return kRows.size() == static_cast<std::size_t>(kUnknown) + 1;
}
static_assert(in_order(), "a row for each kind, in the order of the enumeration");

}  // namespace

std::span<const KindRow> all_kinds() noexcept {
  return kRows;
}

const KindRow& row_of(DiagnosisKind kind) noexcept {
  return kRows[static_cast<std::size_t>(kind)];
}

}  // namespace gradsync
