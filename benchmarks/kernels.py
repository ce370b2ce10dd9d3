"""How long do single layers take, forward and backward, beside what they have to move or multiply?

Microseconds of a program (in PyTorch: of a function) that is fed an array and the gradient of the result, and computes
the result and the gradients of the array and of parameters. The floor of a row is what a copy of as many bytes takes,
each array read or written once, or the products at the machine's best rate.

    python benchmarks/kernels.py --torch PYTHON_WITH_TORCH --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import sides

NAMES = (
    *("softmax, 4096 x 500", "softmax, 50000 x 10", "layer_norm, 4096 x 512", "transpose, 64 x 128 x 8 x 64"),
    *("sum of axes 0 and 2", "max of the last axis", "mean of axes 2 and 3"),
    *("max pooling", "max pooling, channels last", "mean pooling of volumes"),
    *("conv2d", "conv2d, channels last", "conv3d", "conv2d_transpose"),
    *("embedding", "top-k", "dropout"),
)


def main() -> int:
    options = sides.timed_parser(__doc__, NAMES, 0.5).parse_args()
    chosen = options.only or NAMES

    def measure(side: sides.Side) -> sides.Values:
        script = "kernels_torch.py" if side.torch else "kernels_fluid.py"
        return side.values(script, str(options.seconds), *chosen)

    found = sides.find(options)
    results, failed = sides.alternate(found, options.rounds, measure)
    return sides.report(options, "a layer", "microseconds", results, failed, floors=found[0].floors)


if __name__ == "__main__":
    raise SystemExit(main())
