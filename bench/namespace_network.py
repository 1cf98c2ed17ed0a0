"""A network of namespaces on this machine, with cables of known bandwidth (network_testbed.py)."""

import contextlib
import os
import subprocess
import sys

_SUBNET = "10.213.77"


class Network:
    """Namespaces 0 to ranks - 1, joined by a bridge, each behind a cable of `mbit` Mbit/s."""

    def __init__(self, ranks: int, mbit: int):
        self.ranks, self.mbit = ranks, mbit
        self._bridge = f"gsb{os.getpid() % 100000}"
        self._cleanup = contextlib.ExitStack()

    def __enter__(self) -> "Network":
        with contextlib.ExitStack() as cleanup:  # undoes what was done if a later command fails
            self._add(cleanup, "link", self._bridge, "type", "bridge")
            _ip("link", "set", self._bridge, "up")
            for rank in range(self.ranks):
                self._add_rank(cleanup, rank)
            self._cleanup = cleanup.pop_all()
        return self

    def __exit__(self, *_) -> None:
        self._cleanup.close()

    def namespace(self, rank: int) -> str:
        return f"{self._bridge}-{rank}"

    def address(self, rank: int) -> str:
        return f"{_SUBNET}.{rank + 1}"

    def _add_rank(self, cleanup: contextlib.ExitStack, rank: int) -> None:
        name, outside = self.namespace(rank), f"{self._bridge}v{rank}"
        self._add(cleanup, "netns", name)
        _ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", outside, "master", self._bridge, "up")
        _ip("-n", name, "addr", "add", f"{self.address(rank)}/24", "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")
        _ip("-n", name, "link", "set", "lo", "up")
        # What a scheme that paces (BBR) makes of a token bucket is not what it makes of a cable.
        sysctl = ["sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"]
        run(["ip", "netns", "exec", name, *sysctl])
        limit = ["root", "tbf", "rate", f"{self.mbit}mbit", "burst", "64kb", "latency", "50ms"]
        run(["tc", "qdisc", "add", "dev", outside, *limit])
        run(["tc", "-n", name, "qdisc", "add", "dev", "eth0", *limit])

    @staticmethod
    def _add(cleanup: contextlib.ExitStack, kind: str, name: str, *rest: str) -> None:
        _ip(kind, "add", name, *rest)
        cleanup.callback(_ip, kind, "del", name)


def _ip(*arguments: str) -> None:
    run(["ip", *arguments])


def run(command: list) -> None:
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed: {result.stderr.strip()}")
