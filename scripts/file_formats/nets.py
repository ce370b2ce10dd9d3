"""The networks whose saved models go back and forth between fluidlite and Paddle, each in a few lines.

Runs under Python 3.8 and Fluid 1.8.5 as well as here. A network is a function that builds it in the default program and
returns a `Net`.
"""

from collections import namedtuple

import paddle.fluid as fluid

layers = fluid.layers
PLACE = fluid.CPUPlace()

Net = namedtuple("Net", "feeds targets loss optimizer batch")
"""Names to feed for the targets, the targets, the loss, its optimizer, and the batch made of a random generator."""


def lod(rows, lengths):
    return fluid.create_lod_tensor(rows, [lengths], PLACE)


def labels(random, count, classes):
    return random.randint(0, classes, (count, 1)).astype("int64")


def _classified(features, optimizer, classes=4):
    """The usual end: softmax, cross entropy."""
    label = fluid.data("label", [None, 1], "int64")
    predicted = layers.fc(features, classes, act="softmax")
    return predicted, layers.mean(layers.cross_entropy(predicted, label)), optimizer


def conv_bn():
    image = fluid.data("image", [None, 3, 12, 12])
    x = layers.conv2d(image, 6, 3, padding=1, bias_attr=False)
    x = layers.pool2d(layers.batch_norm(x, act="relu"), 2, "max", 2)
    x = layers.conv2d(x, 6, 3, groups=6, use_cudnn=False, act="leaky_relu")
    x = layers.conv2d_transpose(x, 4, filter_size=2, stride=2)
    x = layers.group_norm(layers.resize_bilinear(x, [5, 5]), 2)
    rate = layers.piecewise_decay([2, 4], [0.1, 0.05, 0.01])
    net = _classified(x, fluid.optimizer.Momentum(rate, 0.9, regularization=fluid.regularizer.L2Decay(1e-3)))
    return Net(["image"], net[:1], net[1], net[2], lambda r, n: {
        "image": r.rand(n, 3, 12, 12).astype("float32"), "label": labels(r, n, 4)})  # fmt: skip


def _words(random, count):
    lengths = [int(k) for k in random.randint(1, 6, count)]
    return lod(random.randint(0, 30, (sum(lengths), 1)).astype("int64"), lengths)


def lstm():
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    x = layers.embedding(words, [30, 8])
    hidden, _ = layers.dynamic_lstm(layers.fc(x, 36), 36, use_peepholes=True)
    back = layers.dynamic_gru(layers.fc(x, 18), 6, is_reverse=True)
    x = layers.concat([layers.sequence_pool(hidden, "max"), layers.sequence_last_step(back)], 1)
    net = _classified(x, fluid.optimizer.Adam(layers.exponential_decay(0.01, 2, 0.9)))
    return Net(["words"], [net[0], hidden], net[1], net[2], lambda r, n: {
        "words": _words(r, n), "label": labels(r, n, 4)})  # fmt: skip


def sparse_embedding():
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    x = layers.embedding(words, [30, 8], is_sparse=True, padding_idx=0)
    x = layers.sequence_conv(x, 6, 3, act="tanh")
    net = _classified(layers.sequence_pool(x, "sqrt"), fluid.optimizer.Adagrad(0.1))
    return Net(["words"], net[:1], net[1], net[2], lambda r, n: {
        "words": _words(r, n), "label": labels(r, n, 4)})  # fmt: skip


def while_and_cond():
    x = fluid.data("x", [None, 6])
    turns = layers.fill_constant([1], "int64", 3)
    step = layers.fc(x, 6, act="tanh")

    def body(i, h):
        return [layers.increment(i, in_place=False), layers.scale(layers.tanh(h), 0.9)]

    # Nothing with a gradient goes through the loop: Fluid leaves a part of it out.
    start = [layers.fill_constant([1], "int64", 0), layers.scale(x, 1.0)]
    _, h = layers.while_loop(lambda i, h: layers.less_than(i, turns), body, start)
    h = layers.cond(
        layers.mean(h) > 0.3, lambda: layers.relu(h + step), lambda: layers.elementwise_mul(h, step)
    )
    net = _classified(h, fluid.optimizer.RMSProp(0.01, momentum=0.5, centered=True))
    return Net(["x"], net[:1], net[1], net[2], lambda r, n: {
        "x": r.rand(n, 6).astype("float32") * r.randint(1, 3), "label": labels(r, n, 4)})  # fmt: skip


def dynamic_rnn():
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    x = layers.embedding(words, [30, 8])
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, memory = rnn.step_input(x), rnn.memory(shape=[5])
        memory_now = layers.fc([word, memory], 5, act="tanh")
        rnn.update_memory(memory, memory_now)
        rnn.output(memory_now)
    net = _classified(layers.sequence_last_step(rnn()), fluid.optimizer.Adamax(0.01))
    return Net(["words"], net[:1], net[1], net[2], lambda r, n: {
        "words": _words(r, n), "label": labels(r, n, 4)})  # fmt: skip


def static_rnn():
    x = fluid.data("x", [5, -1, 3])
    x.stop_gradient = False  # Fluid cannot build the backward pass otherwise
    rnn = layers.StaticRNN()
    with rnn.step():
        now = rnn.step_input(x)
        memory = rnn.memory(shape=[-1, 4], batch_ref=x)
        after = layers.fc([now, memory], 4, act="sigmoid")
        rnn.update_memory(memory, after)
        rnn.step_output(after)
    net = _classified(layers.reduce_sum(rnn(), 0), fluid.optimizer.Ftrl(0.1))
    return Net(["x"], net[:1], net[1], net[2], lambda r, n: {
        "x": r.rand(5, n, 3).astype("float32"), "label": labels(r, n, 4)})  # fmt: skip


def attention():
    x = fluid.data("x", [None, None, 8])
    q, k, v = (layers.reshape(layers.fc(x, 8, num_flatten_dims=2), [0, 0, 2, 4]) for _ in range(3))
    q, k, v = (layers.transpose(part, [0, 2, 1, 3]) for part in (q, k, v))
    weights = layers.softmax(layers.matmul(q, k, transpose_y=True, alpha=0.5))
    mixed = layers.transpose(layers.matmul(layers.dropout(weights, 0.1, seed=7), v), [0, 2, 1, 3])
    x = layers.layer_norm(layers.reshape(mixed, [0, 0, 8]) + x, begin_norm_axis=2)
    net = _classified(
        layers.reduce_mean(layers.fc(x, 6, num_flatten_dims=2, act="gelu"), 1), fluid.optimizer.Lamb(0.01)
    )
    return Net(["x"], net[:1], net[1], net[2], lambda r, n: {
        "x": r.rand(n, n + 2, 8).astype("float32"), "label": labels(r, n, 4)})  # fmt: skip


def detection():
    image = fluid.data("image", [None, 3, 16, 16])
    x = layers.conv2d(image, 8, 3, stride=4, padding=1, act="relu")
    boxes, variances = layers.detection.prior_box(x, image, [4.0], [8.0], [1.0, 2.0], flip=True)
    count = boxes.shape[2]
    place = layers.reshape(layers.transpose(layers.conv2d(x, 4 * count, 1), [0, 2, 3, 1]), [0, -1, 4])
    scores = layers.reshape(layers.transpose(layers.conv2d(x, 3 * count, 1), [0, 2, 3, 1]), [0, -1, 3])
    flat = [layers.reshape(part, [-1, 4]) for part in (boxes, variances)]
    found = layers.detection_output(place, scores, flat[0], flat[1], nms_top_k=20, keep_top_k=5)
    loss = layers.mean(layers.square(place - 0.5)) + layers.mean(layers.abs(scores))
    return Net(["image"], [found, scores], loss, fluid.optimizer.LarsMomentum(0.1, 0.9), lambda r, n: {
        "image": r.rand(n, 3, 16, 16).astype("float32")})  # fmt: skip


def crf():
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    tags = fluid.data("tags", [None, 1], "int64", lod_level=1)
    emission = layers.fc(layers.embedding(words, [30, 8]), 4)
    cost = layers.linear_chain_crf(emission, tags, fluid.ParamAttr("transitions"))
    path = layers.crf_decoding(emission, fluid.ParamAttr("transitions"))

    def batch(r, n):
        words = _words(r, n)
        lengths = words.recursive_sequence_lengths()[0]
        return {"words": words, "tags": lod(labels(r, sum(lengths), 4), lengths)}

    return Net(["words"], [path], layers.mean(cost), fluid.optimizer.Adadelta(1.0), batch)


def integers_and_masks():
    x, ids = fluid.data("x", [None, 5]), fluid.data("ids", [None, 1], "int64")
    table = layers.create_parameter([9, 5], "float32", name="table")
    rows = layers.gather(table, layers.reshape(ids, [-1]))
    mask = layers.cast(layers.logical_and(x > 0.2, layers.less_than(x, rows)), "float32")
    best, where = layers.topk(layers.pad(rows * mask + x, [0, 0, 1, 0], 0.5), 2)
    one = fluid.one_hot(layers.reshape(ids, [-1]), 9)
    most = layers.expand(layers.reduce_max(x, 1, keep_dim=True), [1, 2])
    features = layers.concat([best, one, layers.slice(x, [1], [1], [4]), most], 1)
    net = _classified(features, fluid.optimizer.DecayedAdagrad(0.1))
    return Net(["x", "ids"], [net[0], where], net[1], net[2], lambda r, n: {
        "x": r.rand(n, 5).astype("float32"), "ids": labels(r, n, 9), "label": labels(r, n, 4)})  # fmt: skip


def half_precision():
    """A table of float16 numbers, which is cast before it is read."""
    ids = fluid.data("ids", [None, 1], "int64")
    table = layers.create_global_var([9, 6], 0.333, "float16", persistable=True, name="half_table")
    rows = layers.gather(layers.cast(table, "float32"), layers.reshape(ids, [-1]))
    net = _classified(rows, fluid.optimizer.SGD(0.1))
    return Net(
        ["ids"], net[:1], net[1], net[2], lambda r, n: {"ids": labels(r, n, 9), "label": labels(r, n, 4)}
    )


NETS = (conv_bn, lstm, sparse_embedding, while_and_cond, dynamic_rnn, static_rnn, attention, detection, crf,
        integers_and_masks, half_precision)  # fmt: skip
