"""How long does a step of larger models take?

Milliseconds one training step takes, with feeding ready batches and fetching the loss: ResNet-20 (32 images of
32x32), ResNet-50 (8 of 64x64), MobileNetV1 (16 of 64x64), a block of VGG (16 of 64 channels, 32x32), an encoder
(4 layers, 256 wide, 16 texts of 64; also inference), word2vec (5 words beside each of 512, one million rows of 64,
sparse), DeepFM (512 rows of 26 ids out of one million), a language model of PTB's size (two LSTM layers of 200, 20
sequences of 20 out of 10,000 words). fluidlite and Paddle 1.8.5 run scripts/models_fluid.py;
PyTorch runs the equivalent (scripts/models_torch.py), eager and, with --compile, compiled (which fails for DeepFM).

    python benchmarks/models.py --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import sides

GOALS = {
    **{
        name: sides.Goal(times=1, peer=sides.BEST)
        for name in ("resnet-20", "resnet-50", "mobilenet", "vgg block")
    },
    **{name: sides.Goal(times=1.5, peer=sides.BEST) for name in ("encoder", "encoder, inference")},
    **{name: sides.Goal(times=2, peer=sides.BEST) for name in ("word2vec", "deepfm", "ptb lstm")},
}


def main() -> int:
    options = sides.networks_parser(__doc__, tuple(GOALS), 3.0).parse_args()
    chosen = options.only or list(GOALS)

    def measure(side: sides.Side) -> sides.Values:
        script = "models_torch.py" if side.torch else "models_fluid.py"
        found = side.values(script, str(options.seconds), *chosen)
        return {name: [value / 1e3 for value in values] for name, values in found.items()}

    found = sides.find(options)
    results, failed = sides.alternate(found, options.rounds, measure)
    return sides.report(
        options, "a step of larger models", "milliseconds", results, failed, GOALS, floors=found[0].floors
    )


if __name__ == "__main__":
    raise SystemExit(main())
