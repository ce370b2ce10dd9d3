"""What do operators cost whose results have sizes that only the data know?

Microseconds of the processor for a step that feeds one such operator and fetches its result: they run on their own,
between plans. fluidlite and Paddle 1.8.5 run the same script (scripts/data_sizes_fluid.py).

    python benchmarks/data_sizes.py --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import sides


def main() -> int:
    parser = sides.parser(__doc__, rounds=3)
    parser.add_argument(
        "--steps", type=int, default=10, help="steps of each of 15 blocks a turn (default: %(default)s)"
    )
    parser.add_argument("--only", action="append", default=[], help="operators whose row begins like this")
    options = parser.parse_args()

    def measure(side: sides.Side) -> sides.Values:
        return side.values("data_sizes_fluid.py", str(options.steps), *options.only)

    compared = [side for side in sides.find(options) if side.name != sides.TORCH]
    results, failed = sides.alternate(compared, options.rounds, measure)
    return sides.report(options, "sizes that only the data know", "microseconds", results, failed, {})


if __name__ == "__main__":
    raise SystemExit(main())
