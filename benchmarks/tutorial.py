"""How long does the MNIST tutorial take, and how much memory?

The static-graph DataLoader tutorial as it stands (examples/mnist_dataloader.py and its non-iterable twin), 10
epochs of training and testing, in a process of its own from start to end: wall time in seconds and peak
resident memory in MB. Paddle 1.8.5 runs the same text through scripts/on_paddle.py, which only turns the CUDA
place into the CPU and points downloads at local files. FLUIDLITE_DATA names the folder with
mnist/train-images-idx3-ubyte.gz and the other three files; without it fluidlite takes its bundled part of MNIST
and Paddle is skipped.

--check runs a variant with `random_seed` set and without shuffling on both and compares the losses printed.

    FLUIDLITE_DATA=DIR python benchmarks/tutorial.py --paddle PYTHON_OF_PADDLE_1.8.5
    FLUIDLITE_DATA=DIR python benchmarks/tutorial.py --paddle PYTHON_OF_PADDLE_1.8.5 --epochs 1 --check
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from pathlib import Path

import sides

EXAMPLES = {
    "iterable": sides.ROOT / "examples" / "mnist_dataloader.py",
    "non-iterable": sides.ROOT / "examples" / "mnist_dataloader_noniterable.py",
}
GOALS = {
    **{f"{mode}: wall, s": sides.Goal(times=5) for mode in EXAMPLES},
    **{f"{mode}: peak, MB": sides.Goal(times=2) for mode in EXAMPLES},
}
SEEDED = """def seeded_program():
    import paddle.fluid as fluid

    program = fluid.Program()
    program.random_seed = 90
    return program


"""


def edited(source: str, *changes: tuple[str, str]) -> str:
    """`source` with every (old, new) replaced. Raises ValueError for an old text that is not there."""
    for old, new in changes:
        if old not in source:
            raise ValueError(f"the tutorial does not contain {old!r}")
        source = source.replace(old, new)
    return source


def variant(mode: str, epochs: int, seeded: bool) -> str:
    """The text of the tutorial: as it stands for 10 epochs and not `seeded`."""
    source = EXAMPLES[mode].read_text(encoding="utf8")
    if epochs != 10:
        source = edited(source, ("range(10)", f"range({epochs})"))
    if seeded:
        shuffled = "fluid.io.shuffle(fluid.io.batch(mnist.train(), 512), buf_size=1024)"
        source = SEEDED + edited(
            source, ("fluid.Program()", "seeded_program()"), (shuffled, "fluid.io.batch(mnist.train(), 512)")
        )
    return source


def whole_process(side: sides.Side, script: Path) -> tuple[float, float, list[float]]:
    """Run a tutorial script; returns wall seconds, peak resident memory in MB, and the losses it printed.

    Raises SideFailed if it fails.
    """
    begin = time.perf_counter()
    process = side.start("on_paddle.py", str(script)) if side.name == sides.PADDLE else side.start(script)
    assert process.stdout is not None
    with process.stdout as stream:
        output = stream.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise sides.SideFailed(f"{side.name}: ended with status {process.returncode}\n{sides.tail(output)}")
    losses = [float(found) for found in re.findall(r"loss is \[array\(\[([^\]]+)\]", output)]
    return wall, usage.ru_maxrss / 1024, losses


def compare(found: list[sides.Side], scripts: dict[str, Path]) -> int:
    """Print how far the losses of Paddle are from ours; returns 1 if they differ by more than 1e-4 of their size."""
    status = 0
    for mode, script in scripts.items():
        losses = {side.name: whole_process(side, script)[2] for side in found}
        ours, theirs = losses[sides.OURS], losses.get(sides.PADDLE)
        print(f"{mode}: {len(ours)} losses, from {ours[0]:.6g} to {ours[-1]:.6g}")
        if theirs is None:
            continue
        if len(ours) != len(theirs):
            print(f"{mode}: Paddle printed {len(theirs)} losses")
            status = 1
            continue
        worst = max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(ours, theirs, strict=True))
        print(f"{mode}: the largest relative difference from Paddle's is {worst:.2g}")
        status |= worst > 1e-4
    return status


def main() -> int:
    parser = sides.parser(__doc__, rounds=3)
    parser.add_argument(
        "--epochs", type=int, default=10, help="epochs (default: %(default)s, as the tutorial has it)"
    )
    parser.add_argument("--mode", choices=EXAMPLES, action="append", help="this mode only (default: both)")
    parser.add_argument("--check", action="store_true", help="compare losses instead of measuring")
    options = parser.parse_args()
    found = sides.find(options, torch=False)
    if "FLUIDLITE_DATA" not in os.environ:
        print("note: FLUIDLITE_DATA is not set: a part of MNIST only, and no Paddle, which has no such part")
        found = found[:1]

    with tempfile.TemporaryDirectory() as folder:
        scripts = {}
        for mode in options.mode or EXAMPLES:
            scripts[mode] = Path(folder, f"{mode}.py")
            scripts[mode].write_text(variant(mode, options.epochs, options.check), encoding="utf8")
        if options.check:
            try:
                return compare(found, scripts)
            except sides.SideFailed as error:
                print(error)
                return 1

        def measure(side: sides.Side) -> sides.Values:
            values: sides.Values = {}
            for mode, script in scripts.items():
                wall, peak, _ = whole_process(side, script)
                values[f"{mode}: wall, s"], values[f"{mode}: peak, MB"] = [wall], [peak]
            return values

        results, failed = sides.alternate(found, options.rounds, measure)
    title = f"the MNIST tutorial, {options.epochs} epochs, whole process"
    return sides.report(options, title, "seconds and MB", results, failed, GOALS)


if __name__ == "__main__":
    raise SystemExit(main())
