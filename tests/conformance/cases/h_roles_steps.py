"""The chapter of semantic roles over eight steps: four LSTMs with relu and sigmoid, in turns backwards, under a CRF.

Real Paddle loses gradients of LSTMs whose size is a multiple of 8; these are of 12.
"""

from collections import OrderedDict

import paddle.fluid as fluid

L = fluid.layers
SIZE = 4 * 12


def build():
    word, mark, roles = (fluid.data(n, [None, 1], "int64", lod_level=1) for n in ("word", "mark", "roles"))
    found = [L.embedding(word, size=[30, 8], param_attr="vectors"), L.embedding(mark, size=[2, 4])]
    hidden = L.sums([L.fc(x, size=SIZE, act="tanh") for x in found])
    how = {"candidate_activation": "relu", "gate_activation": "sigmoid", "cell_activation": "sigmoid"}
    states, _ = L.dynamic_lstm(hidden, size=SIZE, **how)
    for layer in range(1, 4):
        hidden = L.sums([L.fc(x, size=SIZE, act="tanh") for x in (hidden, states)])
        states, _ = L.dynamic_lstm(hidden, size=SIZE, is_reverse=layer % 2 == 1, **how)
    scores = L.sums([L.fc(x, size=7, act="tanh") for x in (hidden, states)])
    field = fluid.ParamAttr(name="field", learning_rate=0.1)
    cost = L.mean(L.linear_chain_crf(scores, roles, param_attr=field))
    rate = L.exponential_decay(learning_rate=0.01, decay_steps=4, decay_rate=0.5, staircase=True)
    fluid.optimizer.SGD(rate).minimize(cost)
    return OrderedDict([("cost", cost), ("rate", rate)])


def feeds(rng):
    made = []
    for _ in range(8):
        lengths = rng.randint(1, 9, 6).tolist()
        shape = (sum(lengths), 1)
        drawn = {"word": rng.randint(0, 30, shape), "mark": rng.randint(0, 2, shape), "roles": rng.randint(0, 7, shape)}
        made.append(
            {n: fluid.create_lod_tensor(v.astype("int64"), [lengths], fluid.CPUPlace()) for n, v in drawn.items()}
        )
    return made
