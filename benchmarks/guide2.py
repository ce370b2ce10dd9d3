"""How long does an epoch take when a thread reads, and when a process does?

Milliseconds an epoch of the five models in Fluid's guide to reading in dygraph mode, at small size, with the guide's
batch sizes. Images are resized, cut and mirrored at random by NumPy while they are read. fluidlite and Paddle 1.8.5
run the same script (scripts/guide2_fluid.py) with `use_multiprocess` off and on (`process kept`: one for all
epochs, `persistent_workers=True`); PyTorch its equivalent with num_workers 0 and 1: it has no thread that reads, so
that in its rows `thread` reading and training take turns.

`as much Python` is MNIST with as much Python for each batch as its training step takes: the worst case for a thread,
which shares the interpreter's lock. An epoch with a process should take hardly longer than the larger of reading alone
and training alone, and never longer than with a thread.

    python benchmarks/guide2.py --paddle PYTHON_OF_PADDLE_1.8.5 --plot guide2.svg
"""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Mapping
from pathlib import Path

import sides

MODELS = ("MNIST", "ResNet", "SE-ResNeXt", "PTB", "MobileNet V1")
BALANCED = "as much Python"
OF_ALONE, OF_THREAD = f"{BALANCED}, process / larger alone", f"{BALANCED}, process / thread"
GOALS = {OF_ALONE: sides.Goal(limit=1.15), OF_THREAD: sides.Goal(limit=1.0)}


def shares(values: sides.Values) -> sides.Values:
    """The epochs of BALANCED with a process over those of reading or training alone, and over those with a thread."""
    if f"{BALANCED}, process" not in values:
        return {}
    thread, process, reading, training = (
        statistics.median(values[f"{BALANCED}, {what}"])
        for what in ("thread", "process", "reading alone", "training alone")
    )
    return {OF_ALONE: [process / max(reading, training)], OF_THREAD: [process / thread]}


def plot(results: Mapping[str, sides.Values], path: Path) -> None:
    """Draw the epochs of all models to a file: for each side a bar with a thread and one with a process."""
    from matplotlib.figure import Figure

    labels = list(dict.fromkeys(row.rpartition(", ")[0] for values in results.values() for row in values))
    bars = [(side, where) for side in results for where in ("thread", "process")]
    colours = {side: f"C{number}" for number, side in enumerate(results)}
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(bars)
    for number, (side, where) in enumerate(bars):
        heights = [statistics.median(results[side].get(f"{label}, {where}", [0.0])) for label in labels]
        places = [k + (number - (len(bars) - 1) / 2) * width for k in range(len(labels))]
        look = {"color": colours[side], "alpha": 0.45 if where == "thread" else 1.0}
        axes.bar(places, heights, width * 0.92, label=f"{side}, {where}", **look)
    axes.set_xticks(range(len(labels)), labels)
    axes.set_ylabel("an epoch, ms")
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("Epochs of guide 2's models, read by a thread and by a process")
    figure.legend(loc="outside lower center", ncols=len(results), frameon=False)
    figure.savefig(path)


def main() -> int:
    parser = sides.parser(__doc__, rounds=3)
    parser.add_argument(
        "--images", type=int, default=4096, help="size of an epoch, in images (default: %(default)s)"
    )
    parser.add_argument(
        "--epochs", type=int, default=1, help="epochs measured per turn (default: %(default)s)"
    )
    parser.add_argument(
        "--only", choices=[*MODELS, BALANCED], action="append", help="measure this model (can be repeated)"
    )
    parser.add_argument(
        "--plot", metavar="FILE", type=Path, help="draw the epochs (.svg, .png, ...); needs matplotlib"
    )
    options = parser.parse_args()
    if options.plot and importlib.util.find_spec("matplotlib") is None:
        parser.error("--plot needs matplotlib: pip install matplotlib")
    arguments = [str(options.images), str(options.epochs), *(options.only or (*MODELS, BALANCED))]

    def measure(side: sides.Side) -> sides.Values:
        script = "guide2_torch.py" if side.name == sides.TORCH else "guide2_fluid.py"
        values = side.values(script, *arguments)
        return {**values, **shares(values)}

    results, failed = sides.alternate(sides.find(options), options.rounds, measure)
    title = "epochs of guide 2's models"
    status = sides.report(options, title, "milliseconds, and ratios", results, failed, GOALS)
    if options.plot:
        models = {
            name: {row: found for row, found in values.items() if not row.startswith(BALANCED)}
            for name, values in results.items()
        }
        plot(models, options.plot)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
