"""How far do several processes get one step?

Without arguments: what the alpha-beta model says of steps of ResNet-50, BERT-base and a model of clicks on 2, 8, 64,
256 and 1,024 nodes, as a table in Markdown: percent of so many times the rate of one, in brackets
the number of nodes from which it is less than half. It assumes that a message takes alpha seconds (30 us at 10 Gb/s, 5
us at 100) and 1 / beta more for each byte, that links send and receive at full rate at the same time, that nodes are
equally fast and that the middle of the network is as wide as its edges. Every node of a run with servers has one beside
its worker. The computing of a step is assumed, of nodes with one GPU of some years ago (64 images, 32 texts, 1,024
clicks); nodes that compute k times as fast need a network k times as fast for the same figures. "beside backward" is
the best that an exchange during the backward pass can give, which CompiledProgram and fleet approach by messages of
4 MB; models in dygraph mode exchange after it.

With `--measure 2 4`: what each collective takes between so many processes of this machine, beside the same call of
mpi4py. With `--train 2`: what a step of LeNet with a batch of 128 in each process takes alone, in so many processes
that exchange nothing (what a process gets while the other cores work) and in as many that train together, of the
processor's time and by the clock, in rounds that alternate.

    python benchmarks/scaling.py
    python benchmarks/scaling.py --measure 2 4
    python benchmarks/scaling.py --train 2
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial

MB = 1e6
NODES = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
BACKWARD = 2 / 3
"""The part of a step's computing that is the backward pass, beside which gradients can travel."""


@dataclass(frozen=True)
class Network:
    """A network between nodes: seconds that a message takes beside its bytes, and bytes per second."""

    name: str
    alpha: float
    beta: float


@dataclass(frozen=True)
class Model:
    """A step of one node: seconds of computing, bytes of dense gradients, bytes of rows of tables each way."""

    name: str
    compute: float
    dense: float
    rows: float = 0.0


NETWORKS = (Network("10 Gb/s", 30e-6, 10e9 / 8), Network("100 Gb/s", 5e-6, 100e9 / 8))
MODELS = (
    Model("ResNet-50", 0.160, 25.6e6 * 4),
    Model("BERT-base", 0.250, 110e6 * 4),
    Model("clicks", 0.010, 0.4e6 * 4, 1024 * 26 * (10 * 4 + 8)),
)


def all_reduce(nodes: int, size: float, network: Network) -> float:
    """Seconds of the sum of `size` bytes over all nodes: the quicker of a ring and of halving and doubling."""
    moved = 2 * (nodes - 1) / nodes * size / network.beta
    return min(2 * (nodes - 1), 2 * math.ceil(math.log2(nodes))) * network.alpha + moved


def all_gather(nodes: int, size: float, network: Network) -> float:
    """Seconds until everybody has the `size` bytes of each."""
    return math.ceil(math.log2(nodes)) * network.alpha + (nodes - 1) * size / network.beta


def exchange(nodes: int, model: Model, network: Network) -> float:
    """Seconds in which nodes add up gradients: dense ones as sums, rows as they are."""
    rows = all_gather(nodes, model.rows, network) if model.rows else 0.0
    return all_reduce(nodes, model.dense, network) + rows


def collective(nodes: int, model: Model, network: Network, overlaps: bool) -> float:
    """Seconds of a step, with the exchange behind the backward pass or beside it."""
    talk = exchange(nodes, model, network)
    if not overlaps:
        return model.compute + talk
    return model.compute * (1 - BACKWARD) + max(model.compute * BACKWARD, talk)


def with_servers(nodes: int, model: Model, network: Network, waits: bool) -> float:
    """Seconds of a step with a parameter server on every node.

    A server takes its part of the gradients of all, and gives its part of the parameters to all: so does the link of
    each node. `waits`: everything of a step comes one after the other; otherwise the slower of the two counts.
    """
    size = model.dense + model.rows
    link = 2 * network.alpha + 2 * size * (nodes - 1) / nodes / network.beta
    rows = 2 * network.alpha + model.rows / network.beta if model.rows else 0.0  # looked up before the step
    return model.compute + link + rows if waits else max(model.compute, link + rows)


WAYS = {
    "collective, after backward": lambda n, m, w: collective(n, m, w, False),
    "collective, beside backward": lambda n, m, w: collective(n, m, w, True),
    "servers, sync": lambda n, m, w: with_servers(n, m, w, True),
    "servers, async": lambda n, m, w: with_servers(n, m, w, False),
}


def efficiency(nodes: int, model: Model, network: Network, way: str) -> float:
    """The part of `nodes` times the rate of one that is reached."""
    return model.compute / WAYS[way](nodes, model, network)


def stops(model: Model, network: Network, way: str) -> str:
    """The number of nodes from which on less than half of each is of use."""
    found = [n for n in NODES if efficiency(n, model, network, way) < 0.5]
    return str(found[0]) if found else "-"


def tables() -> str:
    """The predictions, in Markdown: percent of the rate of one node at each of these numbers, and where it stops."""
    lines = [
        f"| computing, dense gradients, rows | network | {' | '.join(WAYS)} |",
        "|---|---|" + "---|" * len(WAYS),
    ]
    for model in MODELS:
        sizes = f"{model.compute * 1e3:g} ms, {model.dense / MB:.1f} MB, {model.rows / MB:.1f} MB"
        for network in NETWORKS:
            cells = []
            for way in WAYS:
                rates = ", ".join(
                    f"{efficiency(n, model, network, way):.0%}"[:-1] for n in (2, 8, 64, 256, 1024)
                )
                end = stops(model, network, way)
                cells.append(f"{rates} ({end})" if end != "-" else rates)
            lines.append(f"| {model.name}: {sizes} | {network.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def measured(sizes: list[int], rounds: int) -> None:
    """In one of several processes: print the medians, in microseconds, as process 0 sees them."""
    import numpy as np
    from mpi4py import MPI

    from fluidlite.distributed import world

    here, mpi = world(), MPI.COMM_WORLD
    found: dict[str, list[float]] = {}
    for size in sizes:
        array = np.ones(max(here.size, size // 4 // here.size * here.size), "float32")
        other, many = np.empty_like(array), np.empty((here.size, array.size), "float32")
        part = np.empty(array.size // here.size, "float32")
        calls = {
            "all_reduce": (partial(here.all_reduce, array), partial(mpi.Allreduce, array, other)),
            "broadcast": (partial(here.broadcast, array), partial(mpi.Bcast, other)),
            "all_gather": (partial(here.all_gather, array), partial(mpi.Allgather, array, many)),
            "reduce_scatter": (
                partial(here.reduce_scatter, array),
                partial(mpi.Reduce_scatter_block, array, part),
            ),
        }
        for name, both in calls.items():
            taken: tuple[list[float], list[float]] = ([], [])
            for _ in range(rounds):
                for call, times in zip(both, taken, strict=True):
                    mpi.Barrier()
                    begin = time.perf_counter()
                    call()
                    times.append(time.perf_counter() - begin)
            found[f"{name}, {array.nbytes} B"] = [statistics.median(times) * 1e6 for times in taken]
    if here.rank == 0:
        print("RESULT", json.dumps(found), flush=True)


def measure(processes: int, sizes: list[int], rounds: int) -> int:
    """Start processes that measure, and print the table."""
    command = [sys.executable, "-m", "fluidlite", "launch", "-n", str(processes), __file__, "--rank"]
    command += ["--rounds", str(rounds), "--sizes", *map(str, sizes)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    line = next((one for one in done.stdout.splitlines() if "RESULT " in one), None)
    if done.returncode or line is None:
        print(done.stderr[-2000:], file=sys.stderr)
        return 1
    print(f"\n{processes} processes\n\n| collective | us | mpi4py, us | ratio |\n|---|---:|---:|---:|")
    for name, (ours, theirs) in json.loads(line.partition("RESULT ")[2]).items():
        print(f"| {name} | {ours:.0f} | {theirs:.0f} | {ours / theirs:.2f} |")
    return 0


def trained(steps: int) -> None:
    """In one of the processes: print what a step takes, in milliseconds, and the part of the time that it waits."""
    import numpy as np

    import fluidlite as fluid
    from fluidlite.distributed import world
    from fluidlite.incubate.fleet.base.role_maker import PaddleCloudRoleMaker
    from fluidlite.incubate.fleet.collective import fleet

    fleet.init(PaddleCloudRoleMaker(is_collective=True))
    image, label = fluid.layers.data("image", [1, 28, 28]), fluid.layers.data("label", [1], dtype="int64")
    pool = fluid.nets.simple_img_conv_pool
    hidden = pool(pool(image, 20, 5, 2, 2, act="relu"), 50, 5, 2, 2, act="relu")
    predicted = fluid.layers.fc(hidden, 10, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(predicted, label))
    fleet.distributed_optimizer(fluid.optimizer.Adam(0.001)).minimize(loss)
    exe, rng = fluid.Executor(fluid.CPUPlace()), np.random.default_rng(world().rank)
    exe.run(fluid.default_startup_program())
    feed = {"image": rng.random((128, 1, 28, 28), "float32"), "label": rng.integers(0, 10, (128, 1))}
    for _ in range(5):
        exe.run(fleet.main_program, feed, [loss])
    run = world()
    run.barrier()
    before, wall, busy = max(run.stats()["waited"]), time.perf_counter(), time.process_time()
    for _ in range(steps):
        exe.run(fleet.main_program, feed, [loss])
    busy, wall = time.process_time() - busy, time.perf_counter() - wall
    waited = max(run.stats()["waited"]) - before
    if run.rank == 0:
        print("RESULT", json.dumps([busy / steps * 1e3, wall / steps * 1e3, waited / wall]), flush=True)


def train(processes: int, steps: int, rounds: int) -> int:
    """Train alone, in several processes that exchange nothing, and in several together, by turns; print medians."""
    ways = {"alone": [1], f"{processes} apart": [1] * processes, f"{processes} together": [processes]}
    found: dict[str, list[list[float]]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, launches in ways.items():
            command = [sys.executable, "-m", "fluidlite", "launch", "-n", str(launches[0]), __file__]
            command += ["--steps", str(steps)]
            started = [
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for _ in launches
            ]
            for process in started:
                out, error = process.communicate()
                line = next((one for one in out.splitlines() if "RESULT " in one), None)
                if process.returncode or line is None:
                    print(error[-2000:], file=sys.stderr)
                    return 1
                found[way].append(json.loads(line.partition("RESULT ")[2]))
    medians = {
        way: [statistics.median(column) for column in zip(*lines, strict=True)]
        for way, lines in found.items()
    }
    busy, wall, _ = medians["alone"]
    print("| processes | processor, ms | clock, ms | of it waiting, at most | times the images of one |")
    print("|---|---:|---:|---:|---:|")
    for way, (each, clock, waited) in medians.items():
        count = sum(ways[way])
        rates = f"{count * busy / each:.2f} by the processor's time, {count * wall / clock:.2f} by the clock"
        print(f"| {way} | {each:.1f} | {clock:.1f} | {waited:.0%} | {rates} |")
    return 0


def command() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measure", type=int, nargs="+", default=[], metavar="PROCESSES")
    parser.add_argument("--sizes", type=int, nargs="+", default=[4, 65536, 4194304], help="bytes")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--train", type=int, metavar="PROCESSES")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.steps:
        trained(options.steps)
        return 0
    if options.train:
        return train(options.train, 40, min(options.rounds, 3))
    if options.rank:
        measured(options.sizes, options.rounds)
        return 0
    if not options.measure:
        print(tables())
        return 0
    return max(measure(count, options.sizes, options.rounds) for count in options.measure)


if __name__ == "__main__":
    sys.exit(command())
