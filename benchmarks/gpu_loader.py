"""Does a loader bring big batches to a GPU as fast as it can take them, and beside the steps?

Batches of 128 images of 3 x 224 x 224 in float32 (77 MB), from page-locked and from ordinary arrays: milliseconds a
batch for a loop over the loader alone, and for steps that read each image and then compute for about as long as a copy
takes. A plain copy is the same bytes from page-locked memory, one copy after the other.

    python benchmarks/gpu_loader.py
    python benchmarks/gpu_loader.py --place cpu --images 2 --width 32      without a GPU, to try it out
"""

from __future__ import annotations

import gpu
import sides

GOALS = {
    "loader / plain copy, page-locked": sides.Goal(limit=1 / 0.9),
    "loader / plain copy, ordinary": sides.Goal(limit=1 / 0.9),
    "step / max(copy, compute)": sides.Goal(limit=1.1),
}


def main() -> int:
    parser = sides.parser(__doc__, rounds=3)
    gpu.add_place(parser)
    add = parser.add_argument
    add("--batches", type=int, default=100, help="batches of an epoch (default: %(default)s)")
    add("--images", type=int, default=128, help="images of a batch (default: %(default)s)")
    add("--width", type=int, default=4096, help="of the layers that compute (default: %(default)s)")
    add("--layers", type=int, default=16, help="how many of them (default: %(default)s)")
    options = parser.parse_args()
    if not gpu.ready(options):
        return 2
    sizes = [str(size) for size in (options.batches, options.images, options.width, options.layers)]

    def measure(side: sides.Side) -> sides.Values:
        return side.values("gpu_loader_fluid.py", options.place, *sizes)

    results, failed = sides.alternate(gpu.find(options, torch=False), options.rounds, measure)
    goals = GOALS if options.place == "gpu" else {}
    return sides.report(options, "batches on their way to a GPU", "as named", results, failed, goals)


if __name__ == "__main__":
    raise SystemExit(main())
