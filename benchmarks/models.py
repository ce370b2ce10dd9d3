"""How long does a step of larger models take?

Milliseconds one training step takes, with feeding ready batches and fetching the loss: ResNet-20 (32 images of
32x32), ResNet-50 (8 of 64x64), MobileNetV1 (16 of 64x64), a block of VGG (16 of 64 channels, 32x32), an encoder
(4 layers, 256 wide, 16 texts of 64; also inference), word2vec (5 words beside each of 512, one million rows of 64,
sparse), DeepFM (512 rows of 26 ids out of one million), a language model of PTB's size (two LSTM layers of 200, 20
sequences of 20 out of 10,000 words). fluidlite and Paddle 1.8.5 run scripts/models_fluid.py;
PyTorch, eager, runs the equivalent (scripts/models_torch.py).

    python benchmarks/models.py --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import sides

MODELS = (
    "resnet-20",
    "resnet-50",
    "mobilenet",
    "vgg block",
    "encoder",
    "encoder, inference",
    "word2vec",
    "deepfm",
    "ptb lstm",
)


def main() -> int:
    parser = sides.steps_parser(__doc__)
    parser.add_argument(
        "--seconds",
        type=float,
        default=3.0,
        help="time of measuring per model and turn (default: %(default)s)",
    )
    parser.add_argument(
        "--only", choices=MODELS, action="append", help="measure this model (can be repeated)"
    )
    options = parser.parse_args()
    chosen = options.only or list(MODELS)

    def measure(side: sides.Side) -> sides.Values:
        script = "models_torch.py" if side.name == sides.TORCH else "models_fluid.py"
        found = side.values(script, str(options.seconds), *chosen)
        return {name: [value / 1e3 for value in values] for name, values in found.items()}

    results, failed = sides.alternate(sides.find(options), options.rounds, measure)
    return sides.report(options, "a step of larger models", "milliseconds", results, failed)


if __name__ == "__main__":
    raise SystemExit(main())
