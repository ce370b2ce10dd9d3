"""How long does a step take when there is next to nothing to compute?

Five fully connected layers of 8 x 8 with relu between them, mean square loss, Adam, batch 4: microseconds one
step takes with feeding and fetching the loss. fluidlite and Paddle 1.8.5 run the same script
(scripts/overhead_fluid.py) with `Executor.run`; PyTorch runs its eager equivalent (scripts/overhead_torch.py),
with --torch-compile also torch.compile. For fluidlite the row `engine alone` is the part of the step spent in
the instructions of the plan.

    python benchmarks/overhead.py --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import sides

GOALS = {"step": sides.Goal(limit=60)}


def main() -> int:
    parser = sides.parser(__doc__, rounds=3)
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="time of measuring per turn (default: %(default)s)"
    )
    parser.add_argument("--torch-compile", action="store_true", help="measure torch.compile as well")
    options = parser.parse_args()

    def measure(side: sides.Side) -> sides.Values:
        if side.name == sides.TORCH:
            more = ["--compile"] if options.torch_compile else []
            return side.values("overhead_torch.py", str(options.seconds), *more)
        return side.values("overhead_fluid.py", str(options.seconds))

    results, failed = sides.alternate(sides.find(options), options.rounds, measure)
    return sides.report(
        options, "five 8 x 8 fc layers with Adam, batch 4", "microseconds", results, failed, GOALS
    )


if __name__ == "__main__":
    raise SystemExit(main())
