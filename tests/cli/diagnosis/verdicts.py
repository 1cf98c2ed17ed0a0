#!/usr/bin/env python3
"""Jobs that go wrong, of kinds that were once misjudged, each with variants: kind, ranks and step of
the verdict, as the run says it and as it is read back from the run's directory.

  verdicts.py GRADSYNC             all of them
  verdicts.py GRADSYNC tie         those whose name begins so
"""

import concurrent.futures
import pathlib
import sys
import tempfile

import job


def scenario(ranks, samples, batch=2, **more):
    """`more` replaces or adds sections; train is merged."""
    train = {"batch_size": batch, **more.pop("train", {})}
    return {"ranks": ranks, "model": job.MODEL, "data": job.data(samples), "train": train,
            "detail": more.pop("detail", False), **more}


def wanted(kind, ranks, step, **more):
    return {"kind": kind, "ranks": ranks, "step": step, **more}


def other_groups():
    """A second group does not hide what the first one shows."""
    def control(members, point, **more):
        return [{"kind": "group", "name": "control", "members": members},
                {"kind": "collective", "ranks": members, "at": point, "group": "control",
                 "name": "end of data", **more}]
    for ranks, sizes, batch in ((3, [12, 12, 9], 3), (2, [8, 4], 2), (4, [8, 6, 8, 8], 2),
                                (5, [6, 6, 6, 6, 4], 2), (3, [4, 8, 8], 4), (4, [6, 3, 3, 6], 3)):
        steps = [-(-size // batch) for size in sizes]
        out = [r for r in range(ranks) if steps[r] == min(steps)]
        for point in ("epoch_end", "training_end"):
            yield (f"uneven, a group at {point}, {sizes}",
                   scenario(ranks, sum(sizes), batch, sampler={"shard_sizes": sizes},
                            faults=control(list(range(ranks)), point)),
                   wanted("uneven_shards", out, min(steps)))
    for rank in (0, 2):
        yield (f"no_sync on rank {rank}, a group at step_end",
               scenario(3, 24, faults=[{"kind": "no_sync", "ranks": [rank], "step": 1}]
                        + control([0, 1, 2], "step_end", step=0, steps=0)),
               wanted("no_sync_differs", [rank], 1))
        yield (f"a skip on rank {rank}, a group at step_end",
               scenario(3, 24, faults=[{"kind": "skip", "ranks": [rank], "step": 2, "message": "NaN"}]
                        + control([0, 1, 2], "step_end", step=0, steps=0)),
               wanted("skipped_step", [rank], 2))
        yield (f"the loop left by rank {rank}, a group at training_end",
               scenario(3, 24, faults=[{"kind": "leave_loop", "ranks": [rank], "step": 2}]
                        + control([0, 1, 2], "training_end")),
               wanted("left_loop", [rank], 2))
        yield (f"one collective more on rank {rank}, a group at step_end",
               scenario(3, 24, faults=[{"kind": "collective", "ranks": [rank], "step": 2,
                                        "at": "step_end", "op": "barrier", "name": "debug"}]
                        + control([0, 1, 2], "step_end", step=0, steps=0)),
               wanted("extra_collective", [rank], 2))


def last_steps():
    """A turn in the last step, or to the end: nothing is left that could meet the wrong partner."""
    for ranks, samples, rank in ((3, 24, 1), (2, 16, 0), (4, 32, 3), (5, 20, 2), (8, 48, 7)):
        last = samples // ranks // 2 - 1
        yield (f"the last step skipped by rank {rank} of {ranks}",
               scenario(ranks, samples, faults=[{"kind": "skip", "ranks": [rank], "step": last,
                                                 "message": "NaN"}]),
               wanted("skipped_step", [rank], last))
        yield (f"no_sync from step 1 on, rank {rank} of {ranks}",
               scenario(ranks, samples, faults=[{"kind": "no_sync", "ranks": [rank], "step": 1,
                                                 "steps": 0}]),
               wanted("no_sync_differs", [rank], 1))


def full_rings():
    """The ring has forgotten the fault; the log of the rank has not."""
    for ranks, rank, step, ring in ((3, 2, 4, 32), (2, 0, 3, 16), (4, 1, 6, 24), (3, 0, 5, 16),
                                    (5, 4, 4, 40), (2, 1, 9, 16)):
        yield (f"a skip {step} on rank {rank} of {ranks}, rings of {ring}",
               scenario(ranks, ranks * 80, faults=[{"kind": "skip", "ranks": [rank], "step": step,
                                                    "message": "NaN"}],
                        output={"flight_recorder_size": ring}),
               wanted("skipped_step", [rank], step))


def ties():
    """Two sides are equally large: what they did in earlier steps says which is right."""
    def dispatch(first, steps, ranks=None):
        fault = {"kind": "collective", "step": first, "steps": steps, "at": "backward",
                 "op": "allgather", "elements": 256, "name": "dispatch backward", "site": "moe.py:90"}
        return {**fault, "ranks": ranks} if ranks else fault
    for ranks, there, step in ((2, [0], 3), (2, [1], 3), (2, [0], 5), (4, [0, 1], 3), (4, [1, 3], 4),
                               (6, [0, 2, 4], 3)):
        gone = [r for r in range(ranks) if r not in there]
        for detail in (True, False):
            yield (f"tie: left out by {gone} from step {step} on, detail {detail}",
                   scenario(ranks, ranks * 24, 4, detail=detail,
                            faults=[dispatch(0, step), dispatch(step, 0, there)]),
                   wanted("missing_collective", gone, step))
    for ranks, more in ((2, [0]), (2, [1]), (4, [2, 3])):
        yield (f"tie: one more on {more} in step 3",
               scenario(ranks, ranks * 24, 4, detail=True, faults=[dispatch(3, 1, more)]),
               wanted("extra_collective", more, 3))


def micro_batches():
    """Batches of one step that are not of one size."""
    for ranks, of_rank, batch, accumulate in ((2, 7, 3, 3), (3, 5, 2, 3), (4, 9, 4, 3), (2, 3, 2, 2),
                                              (1, 5, 4, 2), (2, 11, 3, 2)):
        last = (of_rank - 1) // (batch * accumulate)
        yield (f"{of_rank} samples in batches of {batch}, {accumulate} a step, {ranks} ranks",
               scenario(ranks, ranks * of_rank, batch, train={"accumulate_steps": accumulate}),
               wanted("uneven_batches", list(range(ranks)), last,
                      because=f"{batch / (of_rank % batch):.3g} times"))
    yield ("batches that divide the samples", scenario(2, 12, 3, train={"accumulate_steps": 2}), None)


def parameters_outside():
    """The parameters that no bucket holds, whatever clipping does to the others."""
    weight = "layers.0.attn.in_proj_weight"
    for ranks, names, clip in ((3, [weight], 1.0), (2, [weight], 0.1), (4, [weight], None),
                               (2, ["head.weight", "head.bias"], 0.01),
                               (3, ["layers.0.norm1.weight"], 0.5)):
        yield (f"{names} ignored, clip {clip}",
               scenario(ranks, ranks * 8, train={"clip_grad_norm": clip},
                        ddp={"params_and_buffers_to_ignore": names}),
               wanted("parameter_outside_ddp", [], 0,
                      because=f"{len(names)} of 15 parameters {'is' if len(names) == 1 else 'are'} in "
                              f"no bucket"))


def orders_of_epochs():
    """An order that repeats by chance is none that was never changed."""
    for seed in range(40, 60):
        tiny = scenario(4, 8, 1, sampler={"seed": seed, "drop_last": True}, train={"epochs": 2})
        yield f"tiny shards, seed {seed}", tiny, None
    for ranks, samples, epochs in ((2, 40, 2), (3, 36, 3), (4, 64, 2), (2, 24, 2), (1, 16, 2)):
        yield (f"set_epoch never called, {samples} samples on {ranks}",
               scenario(ranks, samples, sampler={"set_epoch": False}, train={"epochs": epochs}),
               wanted("same_order_every_epoch", list(range(ranks)), None))


def joins():
    """Ranks of a join count their steps differently, and nothing is wrong."""
    for sizes, epochs in (([6, 4, 4], 2), ([3, 5], 3), ([1, 6], 2), ([4, 4, 8, 2], 2), ([2, 9, 5], 3),
                          ([7, 7, 1, 1, 3], 2)):
        for clip in (None, 1.0):
            yield (f"join over {sizes}, {epochs} epochs, clip {clip}",
                   scenario(len(sizes), sum(sizes), 1, sampler={"shard_sizes": sizes},
                            train={"epochs": epochs, "clip_grad_norm": clip},
                            ddp={"join": {"enable": True}}), None)
    yield ("join, and another learning rate on one rank",
           scenario(3, 14, 1, sampler={"shard_sizes": [6, 4, 4]}, train={"epochs": 2},
                    ddp={"join": {"enable": True}},
                    faults=[{"kind": "learning_rate", "ranks": [1], "step": 2, "value": 0.5}]),
           wanted("learning_rate_differs", [1], 2))


FAMILIES = (other_groups, last_steps, full_rings, ties, micro_batches, parameters_outside,
            orders_of_epochs, joins)


def mistakes(gradsync, name, given, expected):
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch) / "run"
        result = job.run(gradsync, given, directory)
        found = {"run": result["diagnosis"], "read back": job.diagnose(gradsync, directory)}
    wrong = []
    for when, diagnosis in found.items():
        if diagnosis is not None and diagnosis["verdict"] == "clean":
            diagnosis = None
        same = (diagnosis is None) == (expected is None)
        if same and expected is not None:
            same = all(expected[key] in diagnosis[key] if key == "because"
                       else expected[key] == diagnosis[key] for key in expected)
        if not same:
            wrong.append(f"{name} ({when}): {job.brief(diagnosis)}, expected {expected}\n"
                         f"    {(diagnosis or {}).get('because')}")
    return wrong


def main():
    gradsync = sys.argv[1]
    prefix = sys.argv[2] if len(sys.argv) > 2 else ""
    cases = [case for family in FAMILIES for case in family() if case[0].startswith(prefix)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda case: mistakes(gradsync, *case), cases))
    for wrong in found:
        print("\n".join(wrong), end="\n" if wrong else "")
    bad = sum(1 for wrong in found if wrong)
    print(f"{len(cases) - bad} of {len(cases)} verdicts are right")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
