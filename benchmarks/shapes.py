"""What does it cost when the batch size changes from step to step?

Microseconds of a training step with Adam, feeding, and fetching the loss. Six fully connected layers of 64 x 64
with relu and batch normalisation: 300 batch sizes, 20 to 319 in random order, against size 170, which does as much
work; then the memory that large batches leave behind. Five layers of 8 x 8, which make 45 operators: steps of a
size that has not been there before, each beside a second one of the same size, for 1,000 different sizes in a row
and for sizes from 1 to 10,000. fluidlite and Paddle 1.8.5 run the same script (scripts/shapes_fluid.py; with --eager
scripts/shapes_eager.py, in dygraph mode), PyTorch its eager equivalent (scripts/shapes_torch.py);
scripts/shapes_order.py says which sizes come when.

    python benchmarks/shapes.py --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import sides

GOALS = {
    "six layers: varied / even": sides.Goal(limit=1.3),
    "1,000 sizes: new - as last": sides.Goal(limit=10),
}


def main() -> int:
    parser = sides.parser(__doc__, rounds=3)
    parser.add_argument(
        "--sizes", type=int, default=1000, help="batch sizes in a row, at most (default: %(default)s)"
    )
    parser.add_argument(
        "--passes", type=int, default=3, help="passes over sizes 20 to 319 in a turn (default: %(default)s)"
    )
    parser.add_argument("--eager", action="store_true", help="dygraph mode instead of programs")
    options = parser.parse_args()
    ours = "shapes_eager.py" if options.eager else "shapes_fluid.py"

    def measure(side: sides.Side) -> sides.Values:
        script = "shapes_torch.py" if side.name == sides.TORCH else ours
        return side.values(script, str(options.sizes), str(options.passes))

    results, failed = sides.alternate(sides.find(options), options.rounds, measure)
    return sides.report(options, "batch sizes that change", "microseconds", results, failed, GOALS)


if __name__ == "__main__":
    raise SystemExit(main())
