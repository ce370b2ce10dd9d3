"""How long does a batch take from a worker process to the training process?

Microseconds a batch, over an epoch of a generator that runs in one worker process and, beside it, in the process
itself:

* 1.6 MB batches: ready-made 512 x 784 float32 (and labels), through `set_batch_generator`: what the way between the
  processes costs;
* samples: 784 float32 and a label, from a plain Python generator, put together to batches of 512 in the worker.

The first batch of an epoch, which waits for the process to start, is a figure of its own; fluidlite also keeps the
process from one epoch to the next (`persistent_workers`). fluidlite and Paddle 1.8.5
run the same script in dygraph mode (scripts/workers_fluid.py, `use_multiprocess`); PyTorch's DataLoader reads the same
generators (IterableDataset, num_workers 0 and 1).

    python benchmarks/workers.py --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import sides

SOURCES = ("1.6 MB batches", "samples")
GOALS = {
    "1.6 MB batches, one worker": sides.Goal(times=6, peer=sides.TORCH),
    "samples, one worker": sides.Goal(times=4, peer=sides.TORCH),
}


def main() -> int:
    options = sides.loader_parser(__doc__, batches=500, epochs=3, sources=SOURCES).parse_args()
    arguments = [str(options.batches), str(options.epochs), *(options.only or SOURCES)]

    def measure(side: sides.Side) -> sides.Values:
        return side.values("workers_torch.py" if side.name == sides.TORCH else "workers_fluid.py", *arguments)

    results, failed = sides.alternate(sides.find(options), options.rounds, measure)
    return sides.report(options, "a batch from a worker process", "microseconds", results, failed, GOALS)


if __name__ == "__main__":
    raise SystemExit(main())
