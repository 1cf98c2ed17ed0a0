"""Draws the cases of the differential tests: combinations of options, the same for a seed."""

import random

STEPS = 10  # optimizer steps of a case


def draw(seed: int, count: int) -> list:
    """`count` cases over worlds 1 to 4 (one rank has less to disagree about, so fewer of those)."""
    worlds = [1, 2, 3, 4, 2, 3, 4]
    return [_draw(seed, index, worlds[index % len(worlds)]) for index in range(count)]


def _draw(seed: int, index: int, world: int) -> dict:
    rng = random.Random(f"{seed}/{index}")
    graph = rng.choice(4 * ["fixed"] + 4 * ["unused"] + 2 * ["static"] + ["broken"])
    uneven = graph in ("fixed", "unused") and world > 1 and rng.random() < 0.3
    # static_graph with no_sync is a known defect of PyTorch (pytorch/pytorch#187732).
    several = graph in ("fixed", "unused")
    accumulation_steps = rng.choice([1, 1, 1, 2, 3]) if several else 1
    model = _fed_model(rng, graph, world)
    case = {
        "name": f"{index:03}-world{world}-{graph}" + ("-join" if uneven else ""),
        "world": world,
        "seed": rng.getrandbits(60),
        "dtype": rng.choice(["float32", "float32", "float64"]),
        "model": model,
        "ddp": {
            "bucket_cap_mb": rng.choice([None, 0.0005, 0.002, 0.01, 0.05, 1, 25]),
            "first_bucket_bytes": rng.choice([None, 64, 1000, 5000]),
            "find_unused_parameters": graph == "unused" or (graph == "static" and rng.random() < 0.3),
            "static_graph": graph == "static",
            # A reduction that is not finished would still be writing into views.
            "gradient_as_bucket_view": graph != "broken" and rng.random() < 0.5,
            "broadcast_buffers": rng.random() < 0.7,
            "comm_hook": rng.choice([None, None, None, "allreduce", "fp16_compress"]),
            "power_sgd": None,
            "ignored_parameters": [],
        },
        "sampler": {
            "dataset_size": rng.randint(world * 2, 60),
            "batch_size": rng.randint(1, 4),
            "shuffle": rng.random() < 0.7,
            "seed": rng.choice([0, 42, rng.getrandbits(40)]),
            "drop_last": rng.random() < 0.3,
            "set_epoch": rng.random() < 0.7,
        },
        "train": {
            "steps": STEPS,
            "accumulation_steps": accumulation_steps,
            "set_to_none": rng.random() < 0.5,
            "clip": rng.choice([None, _clip(rng), _clip(rng), _clip(rng)]),
        },
        "optimizer": _optimizer(rng),
        "join": _join(rng, world) if uneven else None,
    }
    if graph == "fixed" and rng.random() < 0.3:
        _compute_for_real(rng, case)
    elif graph == "fixed" and not uneven and rng.random() < 0.3:
        _use_power_sgd(rng, case)
    elif graph == "fixed" and rng.random() < 0.3:
        ignored = rng.randrange(len(model["parameters"]))
        case["ddp"]["ignored_parameters"] = [f"body.p{ignored}"]
    return case


def _fed_model(rng: random.Random, graph: str, world: int) -> dict:
    """A model whose gradients are given to both sides (fed_model.py)."""
    parameters = rng.randint(3, 9)
    return {
        "kind": "fed",
        "parameters": [_shape(rng) for _ in range(parameters)],
        "buffers": [
            {"shape": [rng.randint(1, 20)], "dtype": rng.choice(["float", "float", "int64"])}
            for _ in range(rng.choice([0, 0, 1, 2, 3]))
        ],
        "uses": _uses(rng, graph, parameters, world),
    }


def _compute_for_real(rng: random.Random, case: dict) -> None:
    """Makes the case one in which each side's own kernels compute the gradients."""
    nhead = rng.choice([1, 2, 4])
    case["name"] += "-transformer"
    case["dtype"] = "float32"
    case["model"] = {
        "kind": "transformer",
        "vocab_size": rng.randint(10, 60),
        "d_model": 8 * nhead,
        "nhead": nhead,
        "num_layers": rng.randint(1, 2),
        "dim_feedforward": rng.randint(4, 40),
        "norm_first": rng.random() < 0.5,
        "seq_len": rng.randint(3, 12),
    }
    # Two roundings of nearly equal numbers to 16 bits can be a unit of 16 bits apart.
    if case["ddp"]["comm_hook"] == "fp16_compress":
        case["ddp"]["comm_hook"] = None
    # AdamW divides by a gradient's magnitude, so what rounding leaves of a gradient that should be
    # zero (the keys' bias has no effect on the loss) would move a parameter by a whole step. A
    # difference in a gradient reaches the parameters times lr / eps at most: here, times 1.
    if case["optimizer"]["kind"] == "adamw":
        case["optimizer"]["eps"] = case["optimizer"]["lr"]
    # A loss that climbs without bound doubles every rounding on its way.
    case["optimizer"]["maximize"] = False


def _use_power_sgd(rng: random.Random, case: dict) -> None:
    """Makes the case one with PowerSGD, in a single bucket and without buffers.

    PowerSGD reduces a bucket in three goes, and needs two threads of Gloo. With more than one
    collective under way, PyTorch's order would depend on which thread comes first. In a join its
    hook fails an assertion of its own on the rank that has no inputs left.
    """
    case["name"] += "-powersgd"
    case["dtype"] = "float32"
    case["ddp"]["bucket_cap_mb"] = case["ddp"]["first_bucket_bytes"] = None
    case["model"]["buffers"] = []
    case["ddp"]["comm_hook"] = "power_sgd"
    case["ddp"]["power_sgd"] = {
        "matrix_approximation_rank": rng.randint(1, 3),
        "start_powerSGD_iter": rng.randint(2, 5),
        "use_error_feedback": rng.random() < 0.5,
        "warm_start": rng.random() < 0.5,
        "random_seed": rng.randint(0, 100),
    }


def _shape(rng: random.Random) -> list:
    """Mostly small; now and then one that alone is larger than a bucket or a segment of the ring."""
    kind = rng.random()
    if kind < 0.35:
        return [rng.randint(1, 64)]
    if kind < 0.85:
        return [rng.randint(1, 48), rng.randint(1, 48)]
    if kind < 0.95:
        return [rng.randint(2, 6), rng.randint(2, 6), rng.randint(2, 6)]
    return [rng.randint(150, 600), rng.randint(150, 600)]


def _uses(rng: random.Random, graph: str, parameters: int, world: int) -> list:
    """By rank, a list of forwards, each the parameters that it uses in order.

    Ranks use parameters in orders of their own, so gradients arrive in different orders.
    """
    everything = list(range(parameters))
    if graph == "fixed":
        return [[_order(rng, everything)] for _ in range(world)]
    if graph == "broken":
        # The second forward leaves out the same parameters on all ranks: on one alone, the others
        # would wait for it for ever.
        rest = rng.sample(everything, parameters - rng.randint(1, 2))
        return [[_order(rng, everything), _order(rng, rest)] for _ in range(world)]
    forwards = rng.randint(1, 3) if graph == "unused" else 1
    return [[_order(rng, _some(rng, everything)) for _ in range(forwards)] for _ in range(world)]


def _some(rng: random.Random, parameters: list) -> list:
    if rng.random() < 0.3:
        return parameters
    return rng.sample(parameters, rng.randint(1, len(parameters)))


def _order(rng: random.Random, parameters: list) -> list:
    used = rng.sample(parameters, len(parameters))
    if rng.random() < 0.3:  # a shared layer: one parameter twice in a graph
        used.insert(rng.randrange(len(used) + 1), rng.choice(used))
    return used


def _clip(rng: random.Random) -> dict:
    return {"max_norm": rng.choice([0.5, 1.0, 1000.0]), "norm_type": rng.choice(["1", "2", "inf"])}


def _optimizer(rng: random.Random) -> dict:
    lr, weight_decay = rng.choice([1e-3, 1e-2, 0.1]), rng.choice([0, 1e-2, 0.1])
    if rng.random() < 0.5:
        return {"kind": "adamw", "lr": lr, "weight_decay": weight_decay,
                "betas": rng.choice([[0.9, 0.999], [0.8, 0.95]]), "eps": rng.choice([1e-8, 1e-6]),
                "amsgrad": rng.random() < 0.5, "maximize": rng.random() < 0.2}
    momentum = rng.choice([0, 0.9, 0.5])
    nesterov = momentum > 0 and rng.random() < 0.5
    return {"kind": "sgd", "lr": lr, "weight_decay": weight_decay, "momentum": momentum,
            "nesterov": nesterov, "dampening": 0 if nesterov else rng.choice([0, 0.1]),
            "maximize": rng.random() < 0.2}


def _join(rng: random.Random, world: int) -> dict:
    steps = [rng.randint(1, STEPS) for _ in range(world)]
    steps[rng.randrange(world)] = STEPS
    return {
        "steps": steps,
        "divide_by_initial_world_size": rng.random() < 0.5,
        "throw_on_early_termination": rng.random() < 0.2,
    }
