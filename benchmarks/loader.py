"""How long does the loader take for a batch?

Microseconds a batch, from the first batch of a warm loader to the end of its epoch:

* samples: 784 float32 and a label, from a plain Python generator, into batches of 512, through
  `set_sample_generator` and `set_sample_list_generator` of `DataLoader.from_generator`; PyTorch's DataLoader
  reads the same generator (IterableDataset, num_workers=0);
* ready-made batches through `set_batch_generator`: 512 x 784 float32 (1.6 MB) and 128 x 3 x 224 x 224 (77 MB);
  PyTorch gets the same arrays as tensors (batch_size=None).

The row `floor` is the least that has to be done for a batch: the bare generator, and one copy of the floats;
`/ floor` is how many times that an iterable loader takes.

Iterable loaders are iterated; non-iterable ones feed a program that does nothing else but read, so the figure
holds an `Executor.run` as well. fluidlite and Paddle 1.8.5 run the same script (scripts/loader_fluid.py).

    python benchmarks/loader.py --paddle PYTHON_OF_PADDLE_1.8.5
    python benchmarks/loader.py --clock processor --capacity 64 --only samples
"""

from __future__ import annotations

import statistics

import sides

SOURCES = ("samples", "sample lists", "1.6 MB batches", "77 MB batches")
GOALS = {
    **{f"{source} / floor": sides.Goal(limit=1.2) for source in SOURCES[:2]},
    **{f"{source}, iterable": sides.Goal(times=1) for source in SOURCES[2:]},
}


def main() -> int:
    parser = sides.loader_parser(__doc__, batches=200, epochs=3, sources=SOURCES)
    sides.add_clock(parser)
    parser.add_argument(
        "--capacity", type=int, default=8, help="batches that may wait (default: %(default)s)"
    )
    options = parser.parse_args()
    sources = options.only or SOURCES
    arguments = [str(number) for number in (options.batches, options.epochs, options.capacity)] + [*sources]

    def measure(side: sides.Side) -> sides.Values:
        return side.values("loader_torch.py" if side.name == sides.TORCH else "loader_fluid.py", *arguments)

    results, failed = sides.alternate(sides.find(options), options.rounds, measure)
    for values in results.values():
        for source in sources:
            if f"{source}, floor" in values:
                took, floor = (
                    statistics.median(values[f"{source}, {what}"]) for what in ("iterable", "floor")
                )
                values[f"{source} / floor"] = [took / floor]
    return sides.report(options, "a batch from the loader", "microseconds", results, failed, GOALS)


if __name__ == "__main__":
    raise SystemExit(main())
