"""How long does a training step of the tutorials' networks take?

Microseconds one step takes, with feeding a ready batch and fetching the loss: softmax regression 784-10 (batch
512, Adam), an MLP 784-200-200-10 (batch 64, SGD), a LeNet-like conv net with batch normalisation (batch 64,
Momentum). fluidlite and Paddle 1.8.5 run the same script (scripts/networks_fluid.py); PyTorch runs the
equivalent (scripts/networks_torch.py).

    python benchmarks/networks.py --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import sides

NETWORKS = ("softmax regression", "mlp", "lenet")


def main() -> int:
    parser = sides.steps_parser(__doc__)
    parser.add_argument(
        "--seconds",
        type=float,
        default=2.0,
        help="time of measuring per network and turn (default: %(default)s)",
    )
    parser.add_argument(
        "--only", choices=NETWORKS, action="append", help="measure this network (can be repeated)"
    )
    options = parser.parse_args()
    chosen = options.only or list(NETWORKS)

    def measure(side: sides.Side) -> sides.Values:
        script = "networks_torch.py" if side.name == sides.TORCH else "networks_fluid.py"
        return side.values(script, str(options.seconds), *chosen)

    results, failed = sides.alternate(sides.find(options), options.rounds, measure)
    return sides.report(options, "a training step", "microseconds", results, failed)


if __name__ == "__main__":
    raise SystemExit(main())
