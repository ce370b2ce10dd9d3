"""How long does a training step take without a program?

Microseconds of a step with forward, backward, update and reading the loss: five 8 x 8 linear layers at batch 4, where
next to nothing is computed, and networks of networks.py and models.py with their batches and optimizers. fluidlite
and Paddle 1.8.5 run the same script (scripts/eager_fluid.py) in dygraph mode, PyTorch its equivalents, which are the
scripts of those benchmarks; with --paddle3 an interpreter with Paddle 3 runs the 2.0 form of the smallest two
(scripts/eager_paddle2.py), and so does fluidlite in rows of their own.

    python benchmarks/eager.py --paddle PYTHON_OF_PADDLE_1.8.5 --paddle3 PYTHON_OF_PADDLE_3
"""

from __future__ import annotations

import sides

SCRIPTS = {
    "five 8x8, batch 4": "eager_torch.py",
    "softmax regression": "networks_torch.py",
    "mlp": "networks_torch.py",
    "lenet": "networks_torch.py",
    "resnet-20": "models_torch.py",
    "encoder": "models_torch.py",
}
"""What PyTorch runs for each."""
GOALS = {name: sides.Goal(times=1, peer=sides.TORCH) for name in SCRIPTS}
GOALS["five 8x8, batch 4"] = sides.Goal(times=3, peer=sides.TORCH)
GOALS["softmax regression"] = sides.Goal(times=2, peer=sides.TORCH)


def main() -> int:
    parser = sides.timed_parser(__doc__, tuple(SCRIPTS), 2.0)
    options = parser.parse_args()
    chosen = options.only or list(SCRIPTS)

    def measure(side: sides.Side) -> sides.Values:
        ours = ["eager_fluid.py", *(["eager_paddle2.py"] if side.name == sides.OURS else [])]
        scripts = {sides.PADDLE3: ["eager_paddle2.py"]}.get(side.name, ours)
        if side.name == sides.TORCH:
            scripts = list(dict.fromkeys(SCRIPTS[name] for name in chosen))
        found: sides.Values = {}
        for script in scripts:
            names = [name for name in chosen if not side.torch or SCRIPTS[name] == script]
            found.update(side.values(script, str(options.seconds), *names))
        return found

    results, failed = sides.alternate(sides.find(options, paddle3=True), options.rounds, measure)
    return sides.report(options, "eager training steps", "microseconds", results, failed, GOALS)


if __name__ == "__main__":
    raise SystemExit(main())
