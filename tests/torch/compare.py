"""Holds gradsync's result of a case against PyTorch's, and words the first difference."""

import re

import numpy as np

from results import Result

# Gradients that were given to both sides must agree in every bit after the reduction. What comes
# after it may differ in the last bits: the order in which PyTorch adds up a norm depends on its
# version, the dtype and the processor, and AdamW of 1.13 rounds its first moment in another order
# than 2.x, whose order gradsync has.
_NORM_ULPS = 64
_PARAMETER_ULPS = 8
# Results of each side's own kernels (matrix products, softmax).
_COMPUTED_RELATIVE = 1e-5

_PARAMETER = r"\bbody\.p\d+"  # a parameter's name in a message

# Those of get_ddp_logging_data that are neither times, the environment's, nor names of code.
_LOGGING_FIELDS = (
    "broadcast_buffers", "bucket_cap_bytes", "bucket_sizes", "dtypes",
    "find_unused_parameters", "gradient_as_bucket_view", "has_error", "has_rebuilt_buckets", "iteration",
    "join_uneven_inputs", "num_parameter_tensors", "prev_iteration_grad_ready_order_indices",
    "rank", "rebuilt_bucket_sizes", "rebuilt_per_bucket_param_indices", "static_graph",
    "total_parameter_size_bytes", "unused_parameter_size", "world_size",
)  # fmt: skip


def first_difference(case: dict, ours: Result, theirs: Result, stepwise: bool) -> "str | None":
    """None if the results of one rank agree, else a sentence with both values.

    `stepwise`: gradsync started each step from PyTorch's parameters.
    """
    difference = _compare_errors(ours.fields["error"], theirs.fields["error"])
    if difference:
        return difference
    for field, what in (
        ("steps_completed", "steps completed"),
        ("sampler", "sampler's indices"),
        ("collectives", "collectives"),
    ):
        # PyTorch's PowerSGD issues collectives on threads of Gloo, which its profiler does not see.
        if field == "collectives" and case["ddp"]["power_sgd"]:
            continue
        difference = _compare_exactly(what, ours.fields[field], theirs.fields[field])
        if difference:
            return difference
    for field in _LOGGING_FIELDS:
        # PyTorch notes the iteration in which a graph proved not to be static for the first DDP of a
        # process only, gradsync for each; a process of these tests has many.
        if field == "iteration" and "can_set_static_graph" in ours.fields["logging_data"]:
            continue
        mine, other = (side.fields["logging_data"].get(field) for side in (ours, theirs))
        difference = _compare_exactly(f"DDP's logging data, {field}", mine, other)
        if difference:
            return difference
    computed = case["model"]["kind"] != "fed" or case["ddp"]["power_sgd"] is not None
    # What a step computes is compared where both sides start it from the same parameters.
    drifts = case["model"]["kind"] != "fed" and not stepwise
    for key in theirs.arrays:
        if "/parameter " in key or (drifts and key.startswith("step ")):
            continue
        if computed or key.startswith("final/"):
            bound = _COMPUTED_RELATIVE if computed else _PARAMETER_ULPS * _ulp(case)
        else:
            bound = 0.0
        difference = _compare_array(key, ours.arrays.get(key), theirs.arrays[key], bound)
        if difference:
            return difference
    for field in () if drifts else ("norms", "losses"):
        bound = _COMPUTED_RELATIVE if computed else _NORM_ULPS * _ulp(case)
        difference = _compare_array(
            field, np.array(ours.fields[field]), np.array(theirs.fields[field]), bound
        )
        if difference:
            return difference
    if more := ours.arrays.keys() - theirs.arrays.keys():
        return f"gradsync has arrays that PyTorch has not: {more}"
    return None


def _compare_errors(ours: "str | None", theirs: "str | None") -> "str | None":
    """Both or neither; where PyTorch names parameters, gradsync names the same. Words are its own."""
    both = f"error: gradsync {ours!r}, PyTorch {theirs!r}"
    if (ours is None) != (theirs is None):
        return both
    if theirs is None or not re.search(_PARAMETER, theirs):
        return None
    names = [set(re.findall(_PARAMETER, text)) for text in (ours, theirs)]
    return both if names[0] != names[1] else None


def _ulp(case: dict) -> float:
    return float(np.finfo(case["dtype"]).eps)


def _compare_exactly(what: str, ours, theirs) -> "str | None":
    if ours == theirs:
        return None
    if isinstance(ours, list) and isinstance(theirs, list):
        for position, (mine, other) in enumerate(zip(ours, theirs)):
            if mine != other:
                return f"{what}, entry {position}: gradsync {mine}, PyTorch {other}"
        position = min(len(ours), len(theirs))
        longer, more = ("gradsync", ours) if len(ours) > position else ("PyTorch", theirs)
        return f"{what}: only {longer} has entry {position}: {more[position]}"
    return f"{what}: gradsync {ours!r}, PyTorch {theirs!r}"


def _compare_array(key: str, ours, theirs, relative: float) -> "str | None":
    """Elements may differ by `relative` times the largest magnitude in PyTorch's array."""
    if ours is None or theirs is None:
        if ours is theirs:
            return None
        return f"{key}: gradsync {_say(ours)}, PyTorch {_say(theirs)}"
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{key}: gradsync {_say(ours)}, PyTorch {_say(theirs)}"
    if ours.tobytes() == theirs.tobytes():
        return None
    with np.errstate(invalid="ignore"):
        both_nan = np.isnan(ours) & np.isnan(theirs)
        finite = theirs[np.isfinite(theirs)]
        largest = float(np.abs(finite).max()) if finite.size else 0.0
        distance = np.where(both_nan | (ours == theirs), 0.0, np.abs(ours - theirs))
    too_far = ~(distance <= relative * largest)
    if relative == 0.0:  # to the bit: -0.0 is not 0.0
        too_far |= ours.view(f"u{ours.itemsize}") != theirs.view(f"u{ours.itemsize}")
    if not too_far.any():
        return None
    position = int(np.argmax(too_far))
    return (
        f"{key}: {int(too_far.sum())} of {ours.size} elements differ, first element {position}: "
        f"gradsync {ours[position]!r}, PyTorch {theirs[position]!r} (allowed: {relative:g} of the "
        f"largest, {largest:g})"
    )


def _say(array: "np.ndarray | None") -> str:
    return "none" if array is None else f"{array.size} elements of {array.dtype}"
