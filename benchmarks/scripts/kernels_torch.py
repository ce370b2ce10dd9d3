"""Single layers, forward and backward. usage: kernels_torch.py SECONDS LAYER..."""

import sys

import numpy as np
import torch
from timing import blocks, result
from torch import nn
from torch.nn import functional

IMAGES, VOLUMES = [16, 64, 56, 56], [4, 32, 16, 28, 28]
LAYERS = {
    "softmax, 4096 x 500": ([4096, 500], lambda x: x.softmax(1)),
    "softmax, 50000 x 10": ([50000, 10], lambda x: x.softmax(1)),
    "layer_norm, 4096 x 512": ([4096, 512], nn.LayerNorm(512)),
    "transpose, 64 x 128 x 8 x 64": ([64, 128, 8, 64], lambda x: x.transpose(1, 2).contiguous()),
    "sum of axes 0 and 2": ([64, 128, 8, 64], lambda x: x.sum((0, 2))),
    "max of the last axis": ([8192, 512], lambda x: x.amax(1)),
    "mean of axes 2 and 3": (IMAGES, lambda x: x.mean((2, 3))),
    "max pooling": (IMAGES, lambda x: functional.max_pool2d(x, 3, 2, 1)),
    "max pooling, channels last": (IMAGES, lambda x: functional.max_pool2d(x, 3, 2, 1)),
    "mean pooling of volumes": (VOLUMES, lambda x: functional.avg_pool3d(x, 2)),
    "conv2d": (IMAGES, nn.Conv2d(64, 64, 3, padding=1, bias=False)),
    "conv2d, channels last": (IMAGES, nn.Conv2d(64, 64, 3, padding=1, bias=False)),
    "conv3d": (VOLUMES, nn.Conv3d(32, 32, 3, padding=1, bias=False)),
    "conv2d_transpose": ([16, 64, 28, 28], nn.ConvTranspose2d(64, 32, 4, 2, 1, bias=False)),
    "embedding": ([4096], nn.Embedding(20000, 128)),
    "top-k": ([4096, 1000], lambda x: x.topk(5)[0]),
    "dropout": ([4096, 512], lambda x: functional.dropout(x, 0.3)),
}

metrics = {}
for name in sys.argv[2:]:
    shape, layer = LAYERS[name]
    random = np.random.RandomState(0)
    if name == "embedding":
        x = torch.from_numpy(random.randint(0, 20000, shape))
    else:
        x = torch.from_numpy(random.randn(*shape).astype("float32"))
        if "channels last" in name:
            x = x.contiguous(memory_format=torch.channels_last)
        x.requires_grad_()
    weights = list(layer.parameters()) if isinstance(layer, nn.Module) else []
    wanted = weights + ([x] if x.requires_grad else [])
    g = torch.randn_like(layer(x))

    def step(x=x, layer=layer, g=g, wanted=wanted):
        y = layer(x)
        return y, torch.autograd.grad(y, wanted, g)

    metrics[name] = blocks(step, float(sys.argv[1]))
result(metrics)
