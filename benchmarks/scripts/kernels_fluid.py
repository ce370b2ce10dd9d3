"""Single layers, forward and backward. usage: kernels_fluid.py SECONDS LAYER..."""

import sys

import numpy as np
import paddle.fluid as fluid
from timing import blocks
from work import Work

layers = fluid.layers
IMAGES, LAST, VOLUMES = [16, 64, 56, 56], [16, 56, 56, 64], [4, 32, 16, 28, 28]


def conv(x, **given):
    return layers.conv2d(x, 64, 3, padding=1, bias_attr=False, **given)


LAYERS = {
    "softmax, 4096 x 500": ([4096, 500], layers.softmax),
    "softmax, 50000 x 10": ([50000, 10], layers.softmax),
    "layer_norm, 4096 x 512": ([4096, 512], layers.layer_norm),
    "transpose, 64 x 128 x 8 x 64": ([64, 128, 8, 64], lambda x: layers.transpose(x, [0, 2, 1, 3])),
    "sum of axes 0 and 2": ([64, 128, 8, 64], lambda x: layers.reduce_sum(x, dim=[0, 2])),
    "max of the last axis": ([8192, 512], lambda x: layers.reduce_max(x, dim=[1])),
    "mean of axes 2 and 3": (IMAGES, lambda x: layers.reduce_mean(x, dim=[2, 3])),
    "max pooling": (IMAGES, lambda x: layers.pool2d(x, 3, "max", 2, 1)),
    "max pooling, channels last": (LAST, lambda x: layers.pool2d(x, 3, "max", 2, 1, data_format="NHWC")),
    "mean pooling of volumes": (VOLUMES, lambda x: layers.pool3d(x, 2, "avg", 2)),
    "conv2d": (IMAGES, conv),
    "conv2d, channels last": (LAST, lambda x: conv(x, data_format="NHWC")),
    "conv3d": (VOLUMES, lambda x: layers.conv3d(x, 32, 3, padding=1, bias_attr=False)),
    "conv2d_transpose": (
        [16, 64, 28, 28],
        lambda x: layers.conv2d_transpose(x, 32, filter_size=4, stride=2, padding=1, bias_attr=False),
    ),
    "embedding": ([4096, 1], lambda x: layers.embedding(x, [20000, 128])),
    "top-k": ([4096, 1000], lambda x: layers.topk(x, 5)[0]),
    "dropout": ([4096, 512], lambda x: layers.dropout(x, 0.3)),
}
OUTPUT_READ = ("softmax", "max")  # whose gradients read results
INPUT_READ = ("layer_norm", "max", "conv")

metrics, work = {}, Work()
for name in sys.argv[2:]:
    shape, build = LAYERS[name]
    main, startup = fluid.Program(), fluid.Program()
    random = np.random.RandomState(0)
    whole = name == "embedding"
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", shape, "int64" if whole else "float32")
        x.stop_gradient = whole
        y = build(x)
        towards = main.all_parameters() if whole or "conv" in name else []
        g = fluid.data("g", y.shape, "float32")
        found = fluid.gradients([y], [*towards, *([] if whole else [x])], [g])
        # Of what is large only the beginning is fetched.
        ends = [layers.slice(layers.reshape(each, [-1]), [0], [0], [8]) for each in (y, *found)]
    feed = {
        "x": random.randint(0, 20000, shape).astype("int64")
        if whole
        else random.randn(*shape).astype("float32"),
        "g": random.randn(*y.shape).astype("float32"),
    }
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        metrics[name] = blocks(lambda: exe.run(main, feed=feed, fetch_list=ends), float(sys.argv[1]))
        work.count(name, main, [feed])
        if work.wanted:
            results = sum(int(np.prod(array.shape)) * 4 for array in found)
            read = feed["x"].nbytes + feed["g"].nbytes
            read += any(part in name for part in OUTPUT_READ) * feed["g"].nbytes
            read += any(part in name for part in INPUT_READ) * feed["x"].nbytes
            work.steps[name][1] = read + feed["g"].nbytes + results
work.result(metrics)
