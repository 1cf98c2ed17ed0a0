"""NCCL's all-reduce in closed form, for nodes that are alike: the chooser of simulator/plan/nccl_model.cpp
and the pace of nccl_pace.cpp, of which bench/fit_constants.py estimates the constants.

Times in us, rates in GB/s. Tables and limits: src/graph/tuning.cc, search.cc, enqueue.cc of NCCL v2.30.7.
"""

import functools
import math
import re

KIB, MIB = 1024, 1024 * 1024
LL, LL128, SIMPLE = 0, 1, 2
WIRE = (2.0, 128 / 120, 1.0)
BASE = {"tree": (6.8, 14.0, 8.4), "ring": (6.6, 14.0, 8.4)}
HOP = {("tree", "nvlink"): (0.6, 1.25, 4.0), ("tree", "pci"): (1.0, 1.9, 4.0), ("tree", "net"): (5.0, 8.5, 14.0),
       ("ring", "nvlink"): (0.6, 1.9, 3.4), ("ring", "pci"): (1.0, 2.5, 5.7), ("ring", "net"): (2.7, 4.0, 14.0)}
NVLS_TREE_NET = 20.9
#             LL a node      tree LL128 a channel   tree a channel         NVLSTree  NVLS, plateau
LIMITS = {"volta": ((39, 39, 20.4), (20, 20, 20), (26.5, 18.5, 10), (0, 0, 0), 0.0, 20),
          "ampere": ((87.7, 22.5, 19), (20, 20, 20), (24, 23.6, 17.8), (0, 0, 0), 0.0, 20),
          "hopper": ((141, 45, 35), (36.7, 36.7, 29), (38.7, 41.4, 36), (0, 57.7, 45.5), 0.85, 36.7),
          "blackwell": ((282, 90, 70), (55.6, 31.67, 20), (70, 42.8, 24), (0, 96, 80), 0.74, 40)}
SPEEDS = {False: (48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12),
          True: (48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12)}
CORRECTION = ((1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1),
              (1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1),
              (.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9))
NVLS_PAYLOAD = 0.84

LINK = {"volta": 20, "ampere": 240, "hopper": 370.8, "blackwell": 721.8, "pcie": 24, "rccl": 76.8}


def log2(value):
    return int(math.log2(value))


def gbps(text):
    value, unit = re.match(r"([\d.]+)(\D+)", text).groups()
    return float(value) * {"GBps": 1, "MBps": 1e-3, "Gbps": 0.125}[unit]


def tree_parent(node, nodes, tree):
    if tree:
        shift = (lambda k: nodes - 1 - k) if nodes % 2 == 0 else (lambda k: (k + 1) % nodes)
        back = shift if nodes % 2 == 0 else (lambda k: (k + nodes - 1) % nodes)
        parent = tree_parent(back(node), nodes, 0)
        return None if parent is None else shift(parent)
    if node == 0:
        return None
    bit = node & -node
    up = (node ^ bit) | (bit << 1)
    return node ^ bit if up >= nodes else up


@functools.cache
def depth_of(nodes):
    def steps(node):
        parent = tree_parent(node, nodes, 0)
        return 0 if parent is None else 1 + steps(parent)
    return max(map(steps, range(nodes)))


@functools.cache
def tree_load(nodes):
    """Times that the bytes of a message leave the busiest node, both trees together."""
    leaves = [0.0] * nodes
    for tree in (0, 1):
        for node in range(nodes):
            parent = tree_parent(node, nodes, tree)
            if parent is not None:
                leaves[node] += 0.5
                leaves[parent] += 0.5
    return max(leaves)


class Machines:
    """A cluster and how many of its GPUs there are: what NCCL's chooser needs to know."""

    def __init__(self, cluster, ranks):
        self.generation = cluster.get("generation", "ampere")
        self.topology = cluster.get("node_topology", "switch")
        self.rccl = cluster["library"] == "rccl"
        self.row = "rccl" if self.rccl else "pcie" if self.topology == "pcie_tree" else self.generation
        self.network = cluster.get("network", {}).get("kind", "as_described")
        self.cpu = cluster.get("cpu_vendor", "intel")
        self.gpu_direct = cluster.get("gpu_direct", True)
        self.nvls_on = cluster.get("nccl", {}).get("nvls", True)
        self.torch = "software" in cluster
        self.ranks, gpus = ranks, cluster.get("gpus_per_node", 8)
        self.nodes, self.per_node = -(-ranks // gpus), min(ranks, gpus)
        self.rails = min(cluster.get("nics_per_node", 1), gpus)
        self.line = gbps(cluster.get("inter_node", {"bandwidth": "0GBps"})["bandwidth"])
        others = self.per_node - 1
        self.links = 6 if self.topology == "cube_mesh" else others if self.rccl else 1
        described = gbps(cluster["intra_node"]["bandwidth"])
        self.gpu = described * (others if self.topology == "full_mesh" else self.links)
        self.new = self.generation in ("hopper", "blackwell")
        self._lay_graphs(described)

    def _lay_graphs(self, described):
        if self.nodes == 1:
            self.channels = {"cube_mesh": 6, "pcie_tree": 2}.get(self.topology, 6 if self.generation == "volta" else 12)
            self.inside = described if self.topology == "cube_mesh" else self.gpu / self.channels
            self.tree_inside = self.between = self.inside
            return
        self.channels = self.rails
        share = self.gpu / self.channels
        bound, speeds = min(self.line, share), SPEEDS[self.new]
        self.between = next((speed for speed in speeds if speed <= bound * (1 + 1e-9)), bound)
        self.inside = self.tree_inside = self.between
        for speed in reversed([s for s in speeds if s > self.between]):
            if self.tree_inside >= 2 * self.between or speed > share or self.between not in speeds:
                break
            self.tree_inside = speed

    def allows(self, algorithm, protocol):
        if self.nodes > 1 and protocol != SIMPLE:
            if self.network == "tcpx" or self.network == "efa" and (protocol == LL or not self.new):
                return False
        if algorithm in ("nvls", "nvls_tree"):
            return (self.topology == "switch" and self.new and self.nvls_on and self.per_node > 1 and
                    protocol == SIMPLE and (algorithm == "nvls") == (self.nodes == 1))
        if protocol == LL128:
            return (self.topology != "pcie_tree" or self.per_node == 1) and (self.nodes == 1 or self.gpu_direct)
        return True

    def bus(self, algorithm, protocol):
        column = min(self.nodes, 3) - 1
        ll, tree_ll128, tree, nvls_tree, efficiency, ring_ll128 = LIMITS[self.generation]
        if algorithm in ("nvls", "nvls_tree"):
            channel = 0.863 * self.gpu / 8 * efficiency * 7 / 8 * 2
            if self.nodes > 1:
                channel = min(channel, self.line * self.rails / 8 * (2 if self.nodes == 2 else 1), nvls_tree[column])
            return 8 * channel
        ll_most = ll[0] if self.nodes == 1 else LIMITS["ampere" if self.cpu == "amd" else "volta"][0][column]
        inside = self.tree_inside if algorithm == "tree" else self.inside
        bus = self.channels * (inside if self.nodes <= 2 else self.between)
        if algorithm == "ring":
            return (min(ll_most, bus / 2), min(bus * 0.92, self.channels * ring_ll128), bus)[protocol]
        bus = min(bus * 0.92, self.channels * tree[column])
        return (min(bus / 3.8, ll_most),
                min(bus * (7 / 9 if self.nodes == 1 else 120 / 128), self.channels * tree_ll128[column]), bus)[protocol]

    def hop(self, algorithm, protocol, between):
        if between:
            return HOP["tree" if self.per_node == 1 else algorithm, "net"][protocol]
        return HOP[algorithm, "pci" if self.topology == "pcie_tree" else "nvlink"][protocol]

    def estimate(self, algorithm, protocol, size):
        n = self.ranks
        if algorithm == "nvls":
            latency = 25
        elif algorithm == "nvls_tree":
            latency = 25 + 2 * log2(self.nodes) * NVLS_TREE_NET
        elif algorithm == "tree":
            latency = BASE["tree"][protocol] + 2 * ((self.per_node - 1) * self.hop("tree", protocol, False) +
                                                    log2(self.nodes) * self.hop("tree", protocol, True))
        else:
            overhead = (0 if self.nodes == 1 else 2 if self.cpu == "amd" else 1) * (3 if protocol == SIMPLE else 1)
            steps = 0 if self.nodes == 1 else 2 * (self.nodes - 1)
            latency = (BASE["ring"][protocol] + steps * self.hop("ring", protocol, True) +
                       (2 * (n - 1) - steps) * max(self.hop("ring", protocol, False), overhead))
            if protocol == SIMPLE and self.nodes > 1 and size / (self.channels * n) >= 64:
                latency *= 1.9 if self.generation == "volta" else 1.4
        bandwidth = self.bus(algorithm, protocol) * (0.5 if algorithm == "tree" else n / (2 * (n - 1)))
        step = max(size // 64, 1).bit_length() - 1
        corrected = algorithm == "tree" or (algorithm == "nvls_tree" and self.generation == "blackwell" and
                                            self.cpu != "other")
        if corrected and step < 23:
            bandwidth *= CORRECTION[protocol][step]
        return latency + size / (bandwidth * 1e3)

    def choose(self, size, constants):
        """The first by NCCL's estimate that does not take 3% longer than another."""
        algorithms = ("ring",) if self.rccl else ("tree", "ring", "nvls", "nvls_tree")
        ways = sorted((self.estimate(a, p, size), a, p) for a in algorithms for p in (LL, LL128, SIMPLE)
                      if self.allows(a, p))
        times = [time_of(self, constants, size, a, p) for _, a, p in ways]
        return next(way[1:] for way, time in zip(ways, times) if time <= 1.03 * min(times))

    def lanes(self, algorithm, protocol, size):
        cut = self.inside >= 25 and (not self.new or self.channels <= 4 or self.inside >= 50)
        most = min((4 if cut else 2) * self.channels, 64)
        threads = 640 if protocol == LL128 else 512 * self.width(protocol)
        each = threads * (64 if protocol == SIMPLE else 8 * self.ranks if (algorithm, protocol) == ("ring", LL) else 8)
        return max(1, min(size / each, most)), most

    def width(self, protocol):
        """Threads of a channel, relative to those of the measured limits: half over slow links."""
        return 0.5 if protocol == SIMPLE and self.channels * self.inside <= 12 else 1

    def kernel_limit(self, algorithm, protocol, size):
        """GB/s of the message, as NCCL's authors measured it for each channel."""
        column, limits = min(self.nodes, 3) - 1, LIMITS[self.generation]
        lanes, most = self.lanes(algorithm, protocol, size)
        if algorithm == "tree" and protocol != LL:
            return lanes * self.width(protocol) / 2 * limits[1 if protocol == LL128 else 2][column] / 2
        if algorithm == "ring" and protocol == LL128:
            return lanes / most * self.channels * limits[5] * self.ranks / (2 * (self.ranks - 1))
        return math.inf


def nvls_rounds(machines, constants, size):
    """Rounds, bytes of one, and us that the kernels take for one."""
    tree, heads, row = machines.nodes > 1, machines.per_node, machines.row
    channels = 16 if row == "hopper" else 32 if tree else 24
    concurrent = channels * heads
    chunk = 128 * KIB
    if tree:
        if machines.nodes >= 4 or (row == "blackwell" and heads >= 16):
            chunk = 64 * KIB
        for rounds, less in ((4, 64 * KIB), (1, 32 * KIB)):
            if size < rounds * concurrent * chunk:
                chunk = min(chunk, less)
    else:
        for rounds, less in ((64, 64 * KIB), (8, 32 * KIB), (2, 16 * KIB)):
            if size < rounds * concurrent * chunk:
                chunk = min(chunk, less)
    chunk = min(chunk, size / concurrent)
    step = constants["step." + row] + (min(machines.nodes - 1, 3) * constants["neighbour"] if tree else 0)
    kernels = heads * (chunk * channels / constants["nvls." + row] / 1e3 + step)
    link = concurrent * chunk * (heads + 1) / heads / (NVLS_PAYLOAD * machines.gpu) / 1e3
    return size / (concurrent * chunk), concurrent * chunk, max(kernels, link)


def time_of(machines, constants, size, algorithm, protocol):
    """us of an all-reduce."""
    m, row, n = machines, machines.row, machines.ranks
    start = constants["launch." + row] + (constants["torch"] if m.torch else 0)
    gpu = LINK[row] * m.links * constants["link." + row] if row != "hopper" else m.gpu
    if m.rccl and m.nodes == 1:
        return start + 2 * (n - 1) / n * size / gpu / 1e3
    payload = min(0.93, constants["rate.tcp"] / m.line) if m.network == "tcp" else constants["payload." + m.network]
    nic = m.line * m.rails * payload if m.nodes > 1 else math.inf
    extra = constants["latency." + m.network] + (constants["handshake." + m.network] if protocol != LL else 0)
    if algorithm in ("nvls", "nvls_tree"):
        rounds, loop, each = nvls_rounds(m, constants, size)
        start += BASE["ring"][SIMPLE]
        if algorithm == "nvls":
            return start + (rounds + 2) * each
        each = max(each, loop * tree_load(m.nodes) / nic / 1e3)
        return start + (rounds + 1) * each + 2 * depth_of(m.nodes) * (loop / 2 / nic / 1e3 + NVLS_TREE_NET + extra)
    start += BASE[algorithm][protocol]
    inside = m.hop(algorithm, protocol, False) * constants["hop." + row]
    between = m.hop(algorithm, protocol, True) + extra
    wire = WIRE[protocol]
    if algorithm == "ring":
        moved, steps, slowest = 2 * (n - 1) / n * size / 1e3, 2 * (n - 1), 0
        if n > m.nodes:
            slowest = steps * inside + moved * wire / gpu
            if protocol == LL and constants["ll." + row] and m.nodes == 1:
                slowest = max(slowest, steps * inside + moved / constants["ll." + row])
        if m.nodes > 1:
            slowest = max(slowest, steps * between + moved * wire / nic)
        slowest = max(slowest, steps * (inside if n > m.nodes else between) +
                      size / m.kernel_limit("ring", protocol, size) / 1e3)
        return start + slowest
    channels, _ = m.lanes(algorithm, protocol, size)
    chunk = (32 * KIB, 576000, 512 * KIB)[protocol]
    if protocol == LL128:
        steps = (1 + log2(m.nodes) + 0.1 * m.per_node) / m.per_node
        while size / (channels * chunk) < 64 * steps and chunk > 128 * KIB:
            chunk /= 2
        while size / (channels * chunk) < 16 * steps and chunk > 32 * KIB:
            chunk /= 2
    chunk, rounds = min(size / channels, chunk), max(size / channels / chunk, 1)
    kernel = chunk / (constants["channel." + row] * (0.67, 1.08, 1)[protocol] * m.width(protocol)) / 1e3
    network = chunk * channels * wire / nic / 1e3
    kernel = max(kernel, chunk * channels / m.kernel_limit("tree", protocol, size) / 1e3)
    steady = max(kernel, min(m.per_node - 1, 2) * chunk * channels * wire / gpu / 1e3,
                 network * tree_load(m.nodes))
    return (start + 2 * (m.per_node - 1) * (inside + kernel) + 2 * depth_of(m.nodes) * (between + max(kernel, network / 2)) +
            (rounds - 1) * steady)
