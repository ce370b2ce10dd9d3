"""How long does a step of larger models take?

Milliseconds one training step takes, with feeding ready batches and fetching the loss: ResNet-20 (32 images of
32x32), ResNet-50 (8 of 64x64), MobileNetV1 (16 of 64x64), a block of VGG (16 of 64 channels, 32x32), an encoder
(4 layers, 256 wide, 16 texts of 64; also inference), word2vec (5 words beside each of 512, one million rows of 64,
sparse), DeepFM (512 rows of 26 ids out of one million), a language model of PTB's size (two LSTM layers of 200, 20
sequences of 20 out of 10,000 words). fluidlite and Paddle 1.8.5 run scripts/models_fluid.py;
PyTorch runs the equivalent (scripts/models_torch.py), eager and, with --compile, compiled (which fails for DeepFM).
Paddle 3 runs the same script as Paddle 1.8.5, with what scripts/on_paddle3.py makes of `fluid`.

    python benchmarks/models.py --paddle PYTHON_OF_PADDLE_1.8.5 --paddle3 PYTHON_OF_PADDLE_3
"""

from __future__ import annotations

import sides
import trained

GOALS = {
    **{
        name: sides.Goal(times=1, peer=sides.BEST)
        for name in ("resnet-20", "resnet-50", "mobilenet", "vgg block")
    },
    **{name: sides.Goal(times=1.5, peer=sides.BEST) for name in ("encoder", "encoder, inference")},
    **{name: sides.Goal(times=2, peer=sides.BEST) for name in ("word2vec", "deepfm", "ptb lstm")},
}


if __name__ == "__main__":
    raise SystemExit(trained.main(__doc__, "models", GOALS, "a step of larger models", "milliseconds", 3.0))
