"""Lists that grow in loops over tensors: read by the index of the iteration, sliced, with lists as elements."""

import numpy as np
import pytest

from fluidlite import dygraph, layers
from fluidlite.base.errors import NotSupportedError
from fluidlite.dygraph import declarative, to_variable
from fluidlite.paddle import jit
from fluidlite.paddle.static import InputSpec

from .both_ways import assert_same


def four(x):
    return layers.cast(layers.reduce_sum(x * 0 + 1), "int32")


def number_of_a_list(x):
    factors = [1, 2, 3, 5]
    for i in range(four(x)):
        x = x * factors[i]
    return x


def tensor_of_a_list(x):
    parts, total = [x, x * x, x + 1, x - 2], x * 0
    for i in range(four(x)):
        total = total + parts[i] * i
    return total


def previous_state(x):
    states = [x]
    for i in range(four(x)):
        states.append(layers.tanh(states[i] * x))
    return states[-1], states[2]


def pairs(x):
    states = [[x, x * 2]]
    for i in range(four(x)):
        h, c = states[i]
        states.append([h * 0.5 + c, c * x])
    h, c = states[-1]
    return h, c, states[1][0], len(states)


def dicts_of_tuples(x):
    seen = []
    for i in range(four(x)):
        seen.append({"a": (x * i, x), "b": x + i})
    total = x * 0
    for item in seen:
        first, second = item["a"]
        total = total + first * second + item["b"]
    return total


def rows_first_lists_later(x):
    """States that begin as one tensor for all layers."""
    states = [[x, x * 3]]
    for i in range(four(x)):
        h, c = states[i]
        states.append([[h[k] * c[k] for k in range(2)], [layers.sin(c[k]) for k in range(2)]])
    h, c = states[-1]
    return layers.stack(h) + layers.stack(c)


def lists_in_a_branch(x):
    kept = [(x, x + 1)]
    if layers.reduce_sum(x) > 0:
        kept.append((x * x, x))
    first, second = kept[-1]
    return first - second * 2


def grown(x):
    found = []
    for i in range(four(x)):
        found.append(x * (i + 1))
    return found


def backwards(x):
    return layers.concat(grown(x)[::-1], axis=1)


def slices(x):
    found = grown(x)
    k = layers.cast(layers.reduce_sum(x * 0 + 0.5), "int64")  # 2
    parts = [
        found[1:], found[:-1], found[::2], found[-3:3], found[3:0:-2], found[k:], found[:k],
        found[-100:100:3],
    ]  # fmt: skip
    return [layers.concat(part, axis=0) for part in parts], len(found[5:]), len(found[2:1]), len(found[1:])


def slice_of_pairs(x):
    found = []
    for i in range(four(x)):
        found.append((x * i, x + i))
    total = x * 0
    for one, other in found[:0:-1]:
        total = total * 0.5 + one * other
    return total


FUNCTIONS = [
    number_of_a_list, tensor_of_a_list, previous_state, pairs, dicts_of_tuples, rows_first_lists_later,
    lists_in_a_branch, backwards, slices, slice_of_pairs,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("sign", [1, -1])
def test_same_both_ways(function, sign):
    assert_same(function, sign)


def elements_of_two_forms(x):
    kept = [[x, x]]
    for _ in range(four(x)):
        kept.append([x])
    return kept[0][0]


def elements_of_text(x):
    kept = [[x, "a"]]
    for _ in range(four(x)):
        kept.append([x, "b"])
    return kept[0][0]


@pytest.mark.parametrize("function", [elements_of_two_forms, elements_of_text])
def test_elements_of_different_structure_are_refused(function):
    with (
        dygraph.guard(),
        pytest.raises(NotSupportedError, match="kept changes its length .* of equal structure"),
    ):
        declarative(function)(to_variable(np.ones([2, 2], "float32")))


class Attends(dygraph.Layer):
    """Reads a sequence with two layers, whose states it keeps for all steps, and weighs them in the end."""

    def __init__(self):
        super().__init__()
        self.into = [self.add_sublayer(f"into_{k}", dygraph.Linear(6, 3, act="tanh")) for k in range(2)]

    def forward(self, x):
        start = to_variable(np.zeros((2, x.shape[0], 3), dtype="float32"))
        ones = to_variable(np.ones(x.shape[0], "float32"))
        twos = to_variable(np.full((x.shape[0], 1), 2.0, "float32"))
        states = [[start, start + 1.0]]
        outs = []
        for step in range(x.shape[1]):
            h, c = states[step]
            given, new_h, new_c = x[:, step], [], []
            for k, layer in enumerate(self.into):
                given = layer(layers.concat([given, h[k]], axis=1)) + c[k] * 0.1
                new_h.append(given)
                new_c.append(c[k] * 0.5 + given)
            states.append([new_h, new_c])
            outs.append(given)
        last, _ = states[-1]
        every = layers.stack(outs[::-1], axis=1)
        weights = layers.softmax(layers.matmul(every, layers.unsqueeze(last[1], [2])), axis=1)
        return layers.elementwise_mul(layers.reduce_sum(every * weights, dim=1), ones, axis=0) * twos


def test_saved_states_of_layers_take_other_batches_and_lengths(tmp_path):
    random = np.random.default_rng(3)
    with dygraph.guard():
        net = Attends()
        wanted = {}
        for size in [(2, 4, 3), (1, 1, 3), (3, 7, 3)]:
            x = to_variable(random.uniform(-1, 1, size).astype("float32"))
            x.stop_gradient = False
            out = net(x)
            layers.reduce_sum(out * out).backward()
            wanted[size] = x.numpy(), out.numpy(), x.gradient()
        jit.save(net, str(tmp_path / "net"), input_spec=[InputSpec([None, None, 3], "float32", "x")])
        loaded = jit.load(str(tmp_path / "net"))
        for array, result, gradient in wanted.values():
            x = to_variable(array)
            x.stop_gradient = False
            out = loaded(x)
            layers.reduce_sum(out * out).backward()
            np.testing.assert_allclose(out.numpy(), result, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(x.gradient(), gradient, rtol=1e-4, atol=1e-6)
