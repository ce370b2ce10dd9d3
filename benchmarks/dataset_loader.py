"""How long does `DataLoader(dataset, batch_size=512, num_workers=...)` take for a batch?

Microseconds a batch, from the first batch of an epoch to its end; the loop does nothing but take batches:

* samples: 784 float32 and a label, rows of arrays in memory (the size of MNIST), with 0, 1 and 2 workers;
* heavy samples: each takes about 10 microseconds of Python besides, as an augmentation written in Python does.

Workers persist from epoch to epoch. fluidlite and Paddle 3 run the same script (scripts/dataset_paddle.py), PyTorch
the same with its own names. (Paddle 1.8.5 has this loader too, but its worker processes leave segments of shared memory
behind.)

    python benchmarks/dataset_loader.py --paddle3 PYTHON_OF_PADDLE_3
"""

from __future__ import annotations

import sides

KINDS = ("samples", "heavy samples")
WORKERS = (0, 1, 2)
GOALS = {
    "samples, 1 worker(s)": sides.Goal(times=4, peer=sides.TORCH),
    "samples, 2 worker(s)": sides.Goal(times=4, peer=sides.TORCH),
}


def main() -> int:
    options = sides.loader_parser(__doc__, batches=40, epochs=4, sources=KINDS).parse_args()
    kinds = options.only or KINDS
    arguments = [str(options.batches), str(options.epochs), ",".join(map(str, WORKERS)), *kinds]

    def measure(side: sides.Side) -> sides.Values:
        return side.values(
            "dataset_torch.py" if side.name == sides.TORCH else "dataset_paddle.py", *arguments
        )

    found = [side for side in sides.find(options, paddle3=True) if side.name != sides.PADDLE]
    results, failed = sides.alternate(found, options.rounds, measure)
    return sides.report(options, "a batch from DataLoader(dataset)", "microseconds", results, failed, GOALS)


if __name__ == "__main__":
    raise SystemExit(main())
