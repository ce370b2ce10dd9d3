"""The most important behaviour on a GPU, part by part, each with a line that says what was found.

    python scripts/gpu_smoke.py [--simulated] [--json FILE] [PART...]     in the root of the checkout

The parts: what machine and libraries there are, a kernel that notes a number out of range, the guide's example in both
modes of reading, the double buffer of a loader, and steps as CUDA graphs, whose losses are compared with the CPU's.
`--simulated` goes through those that need no process of their own on the simulated GPU of the tests. The exit status is
0 if all parts are good.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import json
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
STEPS = 8
TOLERANCE = 2e-3
"""By how much of themselves losses after `STEPS` steps of Adam may differ from the CPU's."""


def machine() -> str:
    """The GPU and the libraries; AssertionError without cuBLAS or cuDNN."""
    from fluidlite.backend.cupy_ import blas, dnn, dnn_library, library
    from fluidlite.backend.cupy_.device import device

    missing = [problem for problem in (blas.missing(device(0)), dnn.missing(device(0))) if problem]
    assert not missing, "; ".join(missing)
    cudnn: Any = dnn_library.cudnn()
    compiler = ".".join(map(str, library.load().cuda.nvrtc.getVersion()))
    return (
        f"{library.describe()}; cuBLAS; cuDNN {cudnn.cudnnGetVersion()}; NVRTC {compiler}; "
        f"{'NCCL' if library.nccl() else 'no NCCL'}"
    )


def faults() -> str:
    """A kernel notes a number out of range in page-locked memory, and the host raises it."""
    from fluidlite.backend.cupy_ import faults
    from fluidlite.backend.cupy_.device import device
    from fluidlite.base.errors import OperatorError

    here = device(0)
    ids = here.put(np.array([1, 7, 2]))
    with here.active():
        faults.check(here, "lookup_table", "Ids", ids, 5, "rows")
    here.synchronize()
    try:
        faults.raise_pending(here)
    except OperatorError as error:
        assert "7" in str(error), error
        return "a number out of range was noted"
    raise AssertionError("a number out of range was not noted")


def example(name: str) -> str:
    """An example of the guide to its end, with losses that fall as on the CPU."""
    found = {}
    for place in ("gpu", "cpu"):
        begin = time.perf_counter()
        command = [sys.executable, "-m", "fluidlite", "--device", place, f"examples/{name}.py"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=150, cwd=ROOT, check=False)
        assert not done.returncode, f"on the {place}: {(done.stderr or done.stdout)[-1500:]}"
        losses = [float(text) for text in re.findall(r"loss is \[array\(\[([-+.\de]+)", done.stdout)]
        assert len(losses) >= 20 and np.isfinite(losses).all(), f"on the {place}: {done.stdout[-500:]}"
        found[place] = len(losses), losses[0], float(np.mean(losses[-10:])), time.perf_counter() - begin
    (count, first, last, took), (count_cpu, _, last_cpu, took_cpu) = found["gpu"], found["cpu"]
    assert count == count_cpu and last < first / 2 and abs(last - last_cpu) <= 0.2 * last_cpu + 0.05, found
    return (
        f"{count} losses, {first:.3f} to {last:.4f} in {took:.1f} s (CPU: {last_cpu:.4f} in {took_cpu:.1f} s)"
    )


def double_buffer(count: int = 60, rows: int = 256, side: int = 64) -> str:
    """Batches arrive whole and in order while steps run, in both modes of reading; how many bytes a second."""
    import fluidlite as fluid

    def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for number in range(count):
            yield np.full((rows, 3, side, side), number, "float32"), np.full((rows, 1), number, "int64")

    rates = []
    for iterable in (True, False):
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
            image = fluid.data("image", [None, 3, side, side], "float32")
            label = fluid.data("label", [None, 1], "int64")
            loader = fluid.io.DataLoader.from_generator([image, label], 8, True, iterable)
            hidden = fluid.layers.fc(fluid.layers.flatten(image), 512, act="relu")
            reduce_max, reduce_min = fluid.layers.reduce_max, fluid.layers.reduce_min
            fetches = [reduce_max(image), reduce_min(image), reduce_max(label), reduce_max(hidden)]
            exe = fluid.Executor(fluid.CUDAPlace(0))
            exe.run(fluid.default_startup_program())
            loader.set_batch_generator(batches, fluid.cuda_places() if iterable else None)
            begin = time.perf_counter()
            steps = (exe.run(feed=feed, fetch_list=fetches) for feed in feeds(loader, iterable))
            seen = [[float(np.ravel(value)[0]) for value in step[:3]] for step in until_the_end(steps)]
            rates.append(
                f"{count * rows * 3 * side * side * 4 / (time.perf_counter() - begin) / 2**30:.2f} GiB/s"
            )
            if not iterable:
                loader.reset()
            assert seen == [[number] * 3 for number in range(count)], f"iterable: {iterable}: {seen}"
    return f"iterable {rates[0]}, in the program {rates[1]}"


def feeds(loader: Any, iterable: bool) -> Iterator[Any]:
    """The feeds of steps: those of an iterable loader; None, without end, where the program reads."""
    if iterable:
        yield from loader()
        return
    loader.start()
    while True:
        yield None


def until_the_end(steps: Iterator[Any]) -> Iterator[Any]:
    """The results of steps until the reader of the program raises EOFException."""
    import fluidlite as fluid

    with contextlib.suppress(fluid.core.EOFException):
        yield from steps


def graph(network: str) -> str:
    """Steps become one CUDA graph, with the losses of the CPU."""
    import fluidlite as fluid

    ours, text = trained(fluid.CUDAPlace(0), network)
    theirs, _ = trained(fluid.CPUPlace(), network)
    worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True))
    state = next((line.strip() for line in text.splitlines() if " launches on GPU" in line), text[:500])
    assert "one CUDA graph" in state, f"no graph: {state}"
    assert worst < TOLERANCE, f"losses {ours} on the GPU, {theirs} on the CPU"
    return f"{state}; losses differ by {worst:.1e} of themselves at most"


def trained(place: Any, network: str) -> tuple[list[float], str]:
    """The losses of some steps from the same seeds, and what the plan says of itself."""
    import fluidlite as fluid

    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        shape = [None, 1, 28, 28] if network == "LeNet" else [None, 784]
        image, label = fluid.data("image", shape, "float32"), fluid.data("label", [None, 1], "int64")
        x = image
        for filters in (6, 16) if network == "LeNet" else ():
            x = fluid.layers.batch_norm(fluid.nets.simple_img_conv_pool(x, filters, 5, 2, 2, act="relu"))
        out = fluid.layers.fc(fluid.layers.fc(x, 64, act="relu"), 10)
        loss = fluid.layers.reduce_mean(fluid.layers.softmax_with_cross_entropy(out, label))
        fluid.optimizer.Adam(0.01).minimize(loss)
    scope, exe, chance = fluid.Scope(), fluid.Executor(place), np.random.RandomState(3)
    losses = []
    with fluid.scope_guard(scope):
        exe.run(startup)
        for _ in range(STEPS):
            images, labels = chance.rand(64, *shape[1:]), chance.randint(0, 10, (64, 1))
            feed = {"image": images.astype("float32"), "label": labels.astype("int64")}
            losses.append(float(np.ravel(exe.run(main, feed=feed, fetch_list=[loss])[0])[0]))
        return losses, exe.describe(main, scope)


PARTS: dict[str, Callable[..., str]] = {
    "machine": machine,
    "iterable example": lambda: example("mnist_dataloader"),
    "example without iteration": lambda: example("mnist_dataloader_noniterable"),
    "double buffer": double_buffer,
    "graph of an MLP": lambda: graph("MLP"),
    "graph of a LeNet": lambda: graph("LeNet"),
    "faults": faults,
}
SIMULATED: dict[str, dict[str, int]] = {
    "double buffer": {"count": 6, "rows": 2, "side": 16},
    "graph of an MLP": {},
    "graph of a LeNet": {},
    "faults": {},
}
"""The parts that the simulated GPU can run, with smaller sizes."""


def run(name: str, simulated: bool) -> tuple[bool, str]:
    """Whether a part is good, and what it says; a fault's traceback goes to stderr."""
    try:
        if not simulated:
            return True, PARTS[name]()
        from tests.simulated_cuda import simulated as simulation

        with simulation():
            return True, PARTS[name](**SIMULATED[name])
    except BaseException as error:  # the next part may be good
        traceback.print_exc()
        return False, f"{type(error).__name__}: {error}"


def main() -> int:
    """Run the parts that are asked for, all by default."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--json", help="a file for what was found, written after each part")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}")
    faulthandler.enable()
    results = {}
    for name in options.parts or (SIMULATED if options.simulated else PARTS):
        begin = time.perf_counter()
        good, said = run(name, options.simulated)
        took = time.perf_counter() - begin
        results[name] = {"good": good, "said": said, "seconds": took}
        print(f"{'good' if good else 'BAD '} {took:6.1f} s  {name}: {said[:900]}", flush=True)
        if options.json:
            Path(options.json).write_text(json.dumps(results, indent=1), encoding="utf8")
    return 0 if all(result["good"] for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
