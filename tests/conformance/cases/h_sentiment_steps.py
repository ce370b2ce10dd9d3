"""The sentiment chapter's networks over eight steps: three stacked LSTMs that change direction, and a single one.

Real Paddle loses gradients of LSTMs whose size is a multiple of 8; these are of 12.
"""

from collections import OrderedDict

import paddle.fluid as fluid

L = fluid.layers
ATOL = 1e-4  # Adagrad divides the smallest gradients by their own size


def stacked(words):
    inputs = [L.fc(fluid.embedding(words, size=[40, 16]), size=4 * 12)]
    inputs.append(L.dynamic_lstm(inputs[0], size=4 * 12)[0])
    for layer in (2, 3):
        gates = L.fc(inputs, size=4 * 12)
        inputs = [gates, L.dynamic_lstm(gates, size=4 * 12, is_reverse=layer % 2 == 0)[0]]
    return L.fc([L.sequence_pool(x, "max") for x in inputs], size=2, act="softmax")


def single(words):
    gates = L.fc(fluid.embedding(words, size=[40, 16], is_sparse=True), size=4 * 12, act="tanh")
    states, _ = L.dynamic_lstm(gates, size=4 * 12)
    return L.fc(L.sequence_last_step(states), size=2, act="softmax")


def build():
    words = fluid.data("words", [None], "int64", lod_level=1)
    label = fluid.data("label", [None, 1], "int64")
    costs = [L.mean(L.cross_entropy(make(words), label)) for make in (stacked, single)]
    fluid.optimizer.Adagrad(0.05).minimize(L.sums(costs))
    return OrderedDict(zip(("stacked", "single"), costs))


def feeds(rng):
    made = []
    for _ in range(8):
        lengths = rng.randint(1, 12, 9).tolist()
        words = rng.randint(0, 40, sum(lengths)).astype("int64")
        given = fluid.create_lod_tensor(words, [lengths], fluid.CPUPlace())
        made.append({"words": given, "label": rng.randint(0, 2, (9, 1)).astype("int64")})
    return made
