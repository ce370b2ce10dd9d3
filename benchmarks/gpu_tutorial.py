"""Does the MNIST tutorial train on a GPU as fast as it reads?

The network of Fluid's guide to asynchronous reading (784-10, Adam, batch 512, lists of samples, iterable mode): seconds
an epoch takes with training on the GPU and fetching each loss, and seconds for a loop that only takes the batches.
FLUIDLITE_DATA names the folder with all of MNIST; without it the bundled part is read.

    FLUIDLITE_DATA=DIR python benchmarks/gpu_tutorial.py
    python benchmarks/gpu_tutorial.py --place cpu      without a GPU, to try it out
"""

from __future__ import annotations

import os

import gpu
import sides

GOALS = {"training / reading": sides.Goal(limit=1.2)}


def main() -> int:
    parser = sides.parser(__doc__, rounds=3)
    gpu.add_place(parser)
    parser.add_argument(
        "--epochs", type=int, default=5, help="epochs measured per turn (default: %(default)s)"
    )
    options = parser.parse_args()
    if not gpu.ready(options):
        return 2
    if "FLUIDLITE_DATA" not in os.environ:
        print("note: FLUIDLITE_DATA is not set: the bundled part of MNIST is read")

    def measure(side: sides.Side) -> sides.Values:
        return side.values("gpu_tutorial_fluid.py", options.place, str(options.epochs))

    results, failed = sides.alternate(gpu.find(options, torch=False), options.rounds, measure)
    goals = GOALS if options.place == "gpu" else {}
    return sides.report(options, "the MNIST tutorial on a GPU, an epoch", "seconds", results, failed, goals)


if __name__ == "__main__":
    raise SystemExit(main())
