"""Does the cost of building, planning and saving a program grow with its size, and no faster?

Programs of two sizes are built, trained for a step and saved (scripts/growth_fluid.py): chains of fully connected
layers and of sums, a variable that many operators read, many parameters whose gradients are clipped by their global
norm. A stage is given in microseconds of processor time for each operator of the larger program; the row `growth` says
how many times as much that is as in the smaller one (1 is linear; with the square of the size it would be --factor).
An encoder of 12 layers like BERT-base is given in seconds. fluidlite and Paddle 1.8.5 run the same script; `plan` and
`interpret` are stages of fluidlite's.

    python benchmarks/growth.py --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import statistics

import sides

SIZES = {"layers": 10000, "sums": 10000, "uses": 10000, "parameters": 1000}
ENCODER = "encoder"
TOGETHER = ("build", "minimize", "plan")
"""What goes before the first step."""
LAYERS, OPERATORS = 1250, "layers, 10,000 operators: build + minimize + plan, s"


def per_operator(found: sides.Values) -> dict[str, float]:
    """Microseconds for each operator of the program, by stage."""
    (count,) = found.pop("operators")
    return {stage: statistics.median(values) * 1e6 / count for stage, values in found.items()}


def growth(side: sides.Side, name: str, size: int, factor: int) -> sides.Values:
    """The rows of one program."""
    small = per_operator(side.values("growth_fluid.py", name, str(max(size // factor, 1))))
    large = per_operator(side.values("growth_fluid.py", name, str(size)))
    rows: sides.Values = {}
    for stage, each in large.items():
        rows[f"{name}: {stage}"] = [each]
        rows[f"{name}: {stage}, growth"] = [each / small[stage]]
    return rows


def together(side: sides.Side, layers: int) -> sides.Values:
    """The row of a chain of layers of so many operators."""
    found = side.values("growth_fluid.py", "layers", str(layers))
    return {OPERATORS: [sum(found[stage][0] for stage in TOGETHER if stage in found)]}


def encoder(side: sides.Side, layers: int) -> sides.Values:
    """The rows of the encoder."""
    found = side.values("growth_fluid.py", ENCODER, str(layers))
    del found["operators"]
    return {f"{ENCODER}: {stage}, s": values for stage, values in found.items()}


def main() -> int:
    parser = sides.parser(__doc__, rounds=1)
    names = [*SIZES, ENCODER]
    parser.add_argument(
        "--only", choices=names, action="append", help="measure this program (can be repeated)"
    )
    parser.add_argument("--factor", type=int, default=100, help="between the sizes (default: %(default)s)")
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes (default: %(default)s)")
    options = parser.parse_args()

    def measure(side: sides.Side) -> sides.Values:
        rows: sides.Values = {}
        for name in options.only or names:
            if name == ENCODER:
                rows |= encoder(side, max(round(12 * options.scale), 1))
            else:
                if name == "layers":
                    rows |= together(side, max(round(LAYERS * options.scale), 1))
                rows |= growth(side, name, max(round(SIZES[name] * options.scale), 2), options.factor)
        return rows

    results, failed = sides.alternate(sides.find(options, torch=False), options.rounds, measure)
    goals = {f"{ENCODER}: {stage}, s": sides.Goal(limit=1) for stage in TOGETHER}
    goals[OPERATORS] = sides.Goal(limit=3)
    return sides.report(
        options, "stages of a program", "microseconds of processor time per operator", results, failed, goals
    )


if __name__ == "__main__":
    raise SystemExit(main())
