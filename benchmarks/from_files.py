"""How long does training from slot files take?

Seconds for 100,000 lines like those of click logs: 13 reals, 26 ids, a label (about 330 bytes), in two files;
batches of 1,000.

* load: `InMemoryDataset.load_into_memory`, with 1 and 2 threads;
* logistic regression: `train_from_dataset` over a QueueDataset of a model that is mostly reading, with 1 and 2 threads;
* deep model: the same with embeddings of 10 and two layers of 64; the data set in memory, or read from its files.

fluidlite and Paddle 1.8.5 run the same script (scripts/from_files_fluid.py). PyTorch has nothing like it.

    python benchmarks/from_files.py --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import sides

GOAL = sides.Goal(times=5)
GOALS = {
    name: GOAL
    for name in (
        "load, 1 thread(s)",
        "load, 2 thread(s)",
        "logistic regression, 1 thread(s)",
        "logistic regression, 2 thread(s)",
        "deep model from files, 1 thread(s)",
        "deep model from files, 2 thread(s)",
        "deep model in memory, 1 thread(s)",
        "deep model in memory, 2 thread(s)",
    )
}
FILES = 2


def write(folder: Path, lines: int) -> None:
    """Write `lines` lines into files in `folder`."""
    draw = random.Random(0)
    for number in range(FILES):
        with open(folder / f"part-{number}", "w", encoding="ascii") as file:
            for _ in range(lines // FILES):
                reals = " ".join(f"{draw.random():.4f}" for _ in range(13))
                ids = " ".join(f"1 {draw.randrange(100000)}" for _ in range(26))
                file.write(f"13 {reals} {ids} 1 {draw.randrange(2)}\n")


def main() -> int:
    parser = sides.parser(__doc__, rounds=3)
    parser.add_argument("--lines", type=int, default=100000, help="lines of all files (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), options.lines)

        def measure(side: sides.Side) -> sides.Values:
            return side.values("from_files_fluid.py", folder)

        results, failed = sides.alternate(sides.find(options, torch=False), options.rounds, measure)
    return sides.report(options, f"{options.lines:,} lines of slot files", "seconds", results, failed, GOALS)


if __name__ == "__main__":
    raise SystemExit(main())
