"""How long does a training step of the tutorials' networks take?

Microseconds one step takes, with feeding a ready batch and fetching the loss: softmax regression 784-10 (batch
512, Adam), an MLP 784-200-200-10 (batch 64, SGD), a LeNet-like conv net with batch normalisation (batch 64,
Momentum). fluidlite and Paddle 1.8.5 run the same script (scripts/networks_fluid.py); PyTorch runs the
equivalent (scripts/networks_torch.py), eager and, with --compile, compiled. Paddle 3 runs the same script as Paddle
1.8.5, with what scripts/on_paddle3.py makes of `fluid`.

    python benchmarks/networks.py --paddle PYTHON_OF_PADDLE_1.8.5 --paddle3 PYTHON_OF_PADDLE_3
"""

from __future__ import annotations

import sides
import trained

GOALS = {
    "softmax regression": sides.Goal(times=3, peer=sides.BEST),
    "mlp": sides.Goal(times=3, peer=sides.BEST),
    "lenet": sides.Goal(times=2, peer=sides.BEST),
}


if __name__ == "__main__":
    raise SystemExit(trained.main(__doc__, "networks", GOALS, "a training step", "microseconds", 2.0))
