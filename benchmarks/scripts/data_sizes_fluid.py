"""Operators whose results have sizes that only the data know. usage: data_sizes_fluid.py STEPS [ROW ...]"""

import sys
import time

import numpy as np
import paddle.fluid as fluid
from timing import result

layers = fluid.layers
random = np.random.RandomState(0)
place = fluid.CPUPlace()
lengths = random.randint(10, 200, 256)
rows = int(lengths.sum())


def floats(*shape):
    return random.rand(*shape).astype("float32")


def ids(most, *shape):
    return random.randint(0, most, shape).astype("int64")


def sequences(array, counts=lengths):
    return fluid.create_lod_tensor(array, [[int(n) for n in counts]], place)


def column(*values):
    return np.array([values] * len(lengths), "int64")


def nms(boxes, scores):
    return layers.multiclass_nms(boxes, scores, 0.1, 400, 100)


corners = np.sort(floats(1, 1000, 2), -1) * 0.9
boxes = np.concatenate([corners, corners + 0.1], -1).astype("float32")
WORKS = {
    "where [1000, 1000]": ([floats(1000, 1000) > 0.5], layers.where),
    "where [32, 1000]": ([floats(32, 1000) > 0.5], layers.where),
    "unique, 200,000 of 50,000": ([ids(50000, 200000)], lambda x: layers.unique(x)[1]),
    "unique, 1,200 of 50": ([ids(50, 1200)], lambda x: layers.unique(x)[1]),
    "unique_with_counts, 200,000": ([ids(50000, 200000)], lambda x: layers.unique_with_counts(x)[2]),
    "sequence_unpad": ([floats(256, 200, 64), lengths.astype("int64")], layers.sequence_unpad),
    "sequence_pad": (
        [sequences(floats(rows, 64))],
        lambda x: layers.sequence_pad(x, layers.fill_constant([1], "float32", 0))[0],
    ),
    "sequence_slice": ([sequences(floats(rows, 64)), column(2), column(5)], layers.sequence_slice),
    "sequence_expand": (
        [sequences(floats(rows, 64)), sequences(floats(512, 4), [1, 3] * 128)],
        layers.sequence_expand,
    ),
    "sequence_mask": ([ids(400, 4096)], lambda n: layers.sequence_mask(n, dtype="float32")),
    "slice by tensors": (
        [floats(256, 200, 64), np.array([3], "int32"), np.array([190], "int32")],
        lambda x, start, end: layers.slice(x, [1], [start], [end]),
    ),
    "multiclass_nms, 80 classes": ([boxes, floats(1, 81, 1000) ** 3], nms),
}


def data(name, value):
    if isinstance(value, fluid.LoDTensor):
        shape, kind, level = [None] + value.shape()[1:], str(np.array(value).dtype), 1
    else:
        shape, kind, level = [None] + list(value.shape[1:]), str(value.dtype), 0
    return fluid.data(name, shape, kind, lod_level=level)


def measured(given, build, steps):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        out = build(*[data("x%d" % k, value) for k, value in enumerate(given)])
    feed = {"x%d" % k: value for k, value in enumerate(given)}
    exe = fluid.Executor(place)

    def block():
        begin = time.process_time()
        for _ in range(steps):
            exe.run(main, feed=feed, fetch_list=[out], return_numpy=False)
        return (time.process_time() - begin) / steps * 1e6

    block()
    return [block() for _ in range(15 if steps > 1 else 2)]


only = tuple(sys.argv[2:])
result(
    {
        name: measured(*work, steps=int(sys.argv[1]))
        for name, work in WORKS.items()
        if not only or name.startswith(only)
    }
)
