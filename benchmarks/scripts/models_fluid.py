"""Steps of larger models. usage: models_fluid.py SECONDS MODEL..."""

import sys

import numpy as np
import paddle.fluid as fluid
from models_data import FACTORS, FIELDS, HEADS, LAYERS, ROWS, STATES, VECTOR, WIDTH, WORDS, batch_of
from timing import blocks
from work import Work

layers = fluid.layers


def convolved(x, filters, size, stride=1, act="relu", groups=1):
    x = layers.conv2d(x, filters, size, stride, (size - 1) // 2, groups=groups, bias_attr=False)
    return layers.batch_norm(x, act=act)


def shortcut(x, filters, stride):
    return x if stride == 1 and x.shape[1] == filters else convolved(x, filters, 1, stride, None)


def basic(x, filters, stride):
    out = convolved(convolved(x, filters, 3, stride), filters, 3, act=None)
    return layers.elementwise_add(shortcut(x, filters, stride), out, act="relu")


def bottleneck(x, filters, stride):
    out = convolved(convolved(x, filters, 1), filters, 3, stride)
    out = convolved(out, 4 * filters, 1, act=None)
    return layers.elementwise_add(shortcut(x, 4 * filters, stride), out, act="relu")


def classified(x, y):
    if len(x.shape) == 4:
        x = layers.pool2d(x, pool_type="avg", global_pooling=True)
    return layers.reduce_mean(layers.softmax_with_cross_entropy(layers.fc(x, 10), y))


def resnet(x, y, block, stages):
    for filters, count, first in stages:
        for k in range(count):
            x = block(x, filters, first if k == 0 else 1)
    return classified(x, y)


def resnet20(x, y):
    return resnet(convolved(x, 16, 3), y, basic, [(16, 3, 1), (32, 3, 2), (64, 3, 2)])


def resnet50(x, y):
    x = layers.pool2d(convolved(x, 64, 7, 2), 3, "max", 2, 1)
    return resnet(x, y, bottleneck, [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)])


def mobilenet(x, y):
    x = convolved(x, 32, 3, 2)
    for filters, stride in (
        [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)]
        + 5 * [(512, 1)]
        + [
            (1024, 2),
            (1024, 1),
        ]
    ):
        x = convolved(x, x.shape[1], 3, stride, groups=x.shape[1])
        x = convolved(x, filters, 1)
    return classified(x, y)


def vgg_block(x, y):
    for _ in range(3):
        x = layers.conv2d(x, 128, 3, padding=1, act="relu")
    return classified(layers.pool2d(x, 2, "max", 2), y)


def attention(x, dropout):
    def heads(size):
        part = layers.reshape(layers.fc(x, WIDTH, num_flatten_dims=2), [0, 0, HEADS, size])
        return layers.transpose(part, [0, 2, 1, 3])

    size = WIDTH // HEADS
    weights = layers.softmax(layers.matmul(heads(size), heads(size), transpose_y=True, alpha=size**-0.5))
    if dropout:
        weights = layers.dropout(weights, 0.1, dropout_implementation="upscale_in_train")
    mixed = layers.transpose(layers.matmul(weights, heads(size)), [0, 2, 1, 3])
    return layers.fc(layers.reshape(mixed, [0, 0, WIDTH]), WIDTH, num_flatten_dims=2)


def encoded(x, dropout=True):
    for _ in range(LAYERS):
        x = layers.layer_norm(x + attention(x, dropout), begin_norm_axis=2)
        hidden = layers.fc(x, 4 * WIDTH, num_flatten_dims=2, act="relu")
        x = layers.layer_norm(x + layers.fc(hidden, WIDTH, num_flatten_dims=2), begin_norm_axis=2)
    return x


def encoder(x, y):
    return classified(layers.reduce_mean(encoded(x), dim=1), y)


def word2vec(x, y):
    word = fluid.embedding(x, [ROWS, VECTOR], is_sparse=True)
    others = fluid.embedding(y, [ROWS, VECTOR], is_sparse=True)
    scores = layers.reduce_sum(others * word, dim=-1)
    wanted = layers.concat(
        [layers.fill_constant([512, 1], "float32", 1.0), layers.fill_constant([512, 5], "float32", 0.0)], 1
    )
    return layers.reduce_mean(layers.sigmoid_cross_entropy_with_logits(scores, wanted))


def deepfm(x, y):
    first = layers.reduce_sum(fluid.embedding(x, [ROWS, 1], is_sparse=True), dim=[1, 2])
    vectors = fluid.embedding(x, [ROWS, FACTORS], is_sparse=True)
    both = layers.square(layers.reduce_sum(vectors, dim=1)) - layers.reduce_sum(layers.square(vectors), dim=1)
    hidden = layers.reshape(vectors, [-1, FIELDS * FACTORS])
    for _ in range(3):
        hidden = layers.fc(hidden, 400, act="relu")
    score = layers.fc(hidden, 1) + layers.reshape(first + 0.5 * layers.reduce_sum(both, dim=1), [-1, 1])
    return layers.reduce_mean(layers.sigmoid_cross_entropy_with_logits(score, layers.cast(y, "float32")))


def ptb_lstm(x, y):
    vectors = fluid.embedding(x, [WORDS, STATES])
    hidden = fluid.contrib.layers.basic_lstm(vectors, None, None, STATES, num_layers=2, forget_bias=0.0)[0]
    scores = layers.fc(hidden, WORDS, num_flatten_dims=2)
    return layers.reduce_mean(layers.softmax_with_cross_entropy(scores, layers.unsqueeze(y, [2])))


MODELS = {
    "resnet-20": resnet20,
    "resnet-50": resnet50,
    "mobilenet": mobilenet,
    "vgg block": vgg_block,
    "encoder": encoder,
    "encoder, inference": lambda x: encoded(x, False),
    "word2vec": word2vec,
    "deepfm": deepfm,
    "ptb lstm": ptb_lstm,
}
OPTIMIZERS = {
    "encoder": lambda: fluid.optimizer.Adam(0.001),
    "word2vec": lambda: fluid.optimizer.SGD(0.1),
    "deepfm": lambda: fluid.optimizer.Adam(0.001, lazy_mode=True),
    "encoder, inference": None,
    "ptb lstm": lambda: fluid.optimizer.SGD(0.1),
}
metrics, work = {}, Work()
for name in sys.argv[2:]:
    optimizer = OPTIMIZERS.get(name, lambda: fluid.optimizer.Momentum(0.01, 0.9))
    feed = {key: array for key, array in batch_of(name).items() if optimizer or key == "x"}
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        made = MODELS[name](*(fluid.data(key, list(feed[key].shape), str(feed[key].dtype)) for key in feed))
        if optimizer:
            optimizer().minimize(made)
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        metrics[name] = blocks(lambda: exe.run(main, feed=feed, fetch_list=[made]), float(sys.argv[1]))
        assert np.isfinite(exe.run(main, feed=feed, fetch_list=[made])[0]).all()
        work.count(name, main, [feed])
work.result(metrics)
