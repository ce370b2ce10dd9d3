"""How long does a training step of the tutorials' networks take?

Microseconds one step takes, with feeding a ready batch and fetching the loss: softmax regression 784-10 (batch
512, Adam), an MLP 784-200-200-10 (batch 64, SGD), a LeNet-like conv net with batch normalisation (batch 64,
Momentum). fluidlite and Paddle 1.8.5 run the same script (scripts/networks_fluid.py); PyTorch runs the
equivalent (scripts/networks_torch.py).

    python benchmarks/networks.py --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import sides

GOALS = {
    "softmax regression": sides.Goal(times=3, peer=sides.BEST),
    "mlp": sides.Goal(times=3, peer=sides.BEST),
    "lenet": sides.Goal(times=2, peer=sides.BEST),
}


def main() -> int:
    options = sides.networks_parser(__doc__, tuple(GOALS), 2.0).parse_args()
    chosen = options.only or list(GOALS)

    def measure(side: sides.Side) -> sides.Values:
        script = "networks_torch.py" if side.torch else "networks_fluid.py"
        return side.values(script, str(options.seconds), *chosen)

    found = sides.find(options)
    results, failed = sides.alternate(found, options.rounds, measure)
    return sides.report(
        options, "a training step", "microseconds", results, failed, GOALS, floors=found[0].floors
    )


if __name__ == "__main__":
    raise SystemExit(main())
