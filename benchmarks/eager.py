"""How long does a training step take without a program?

Microseconds of a step with forward, backward, Adam and reading the loss: five 8 x 8 linear layers at batch 4, where
next to nothing is computed, and softmax regression on 784 pixels at batch 512. fluidlite and Paddle 1.8.5 run the
same script (scripts/eager_fluid.py) in dygraph mode, PyTorch its equivalent; with --paddle3 an interpreter with Paddle
3 runs the 2.0 form of it (scripts/eager_paddle2.py), and so does fluidlite in a row of its own.

    python benchmarks/eager.py --paddle PYTHON_OF_PADDLE_1.8.5 --paddle3 PYTHON_OF_PADDLE_3
"""

from __future__ import annotations

import sides

GOALS = {
    "five 8x8, batch 4": sides.Goal(times=3, peer=sides.TORCH),
    "784-10, batch 512": sides.Goal(times=2, peer=sides.TORCH),
}


def main() -> int:
    parser = sides.parser(__doc__, rounds=3)
    parser.add_argument(
        "--seconds",
        type=float,
        default=2.0,
        help="time of measuring per turn and network (default: %(default)s)",
    )
    options = parser.parse_args()
    scripts = {sides.TORCH: ["eager_torch.py"], sides.PADDLE3: ["eager_paddle2.py"]}

    def measure(side: sides.Side) -> sides.Values:
        found: sides.Values = {}
        ours = ["eager_fluid.py", "eager_paddle2.py"] if side.name == sides.OURS else ["eager_fluid.py"]
        for script in scripts.get(side.name, ours):
            found.update(side.values(script, str(options.seconds)))
        return found

    results, failed = sides.alternate(sides.find(options, paddle3=True), options.rounds, measure)
    return sides.report(options, "eager training steps", "microseconds", results, failed, GOALS)


if __name__ == "__main__":
    raise SystemExit(main())
