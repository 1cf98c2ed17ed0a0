"""Runs one process a rank, as torchrun would (Debian 12's fails on Python 3.11)."""

import os
import socket
import subprocess
import tempfile
import time

_ONE_FAILED_SECONDS = 10  # what the others have to end by themselves after a first failure


def run(command: list, world: int, seconds: float, environment: "dict | None" = None) -> "str | None":
    """None if all ranks ended with status 0, else how the first failure ended, with its last words.

    No process is left behind.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = {
        **os.environ,
        **(environment or {}),
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    with tempfile.TemporaryFile() as errors:
        processes = [
            subprocess.Popen(
                [str(part) for part in command],
                env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                stderr=errors,
            )
            for rank in range(world)
        ]
        try:
            failure = _wait(processes, time.monotonic() + seconds)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        if failure:
            errors.seek(0)
            failure += ":\n" + errors.read()[-3000:].decode(errors="replace")
        return failure


def _wait(processes: list, deadline: float) -> "str | None":
    failure = None
    while any(process.poll() is None for process in processes):
        for rank, process in enumerate(processes):
            if failure is None and process.poll():
                failure = f"rank {rank} ended with status {process.returncode}"
                deadline = min(deadline, time.monotonic() + _ONE_FAILED_SECONDS)
        if time.monotonic() > deadline:
            running = [rank for rank, process in enumerate(processes) if process.poll() is None]
            return failure or f"ranks {running} did not end"
        time.sleep(0.005)
    if failure is None:
        for rank, process in enumerate(processes):
            if process.returncode:
                return f"rank {rank} ended with status {process.returncode}"
    return failure
