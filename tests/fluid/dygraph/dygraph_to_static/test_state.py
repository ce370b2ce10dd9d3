"""Side effects of called functions (on lists, attributes, dicts) under conditions and in loops on tensors."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph, layers
from fluidlite.dygraph import declarative, to_variable

from .both_ways import assert_same


def list_given_to_a_function(x):
    def add(items, value):
        items.append(value)

    outs = []
    while layers.reduce_sum(x * x) < 50:
        x = x * 1.5
        add(outs, x)
    return outs[-1], len(outs), layers.concat(outs, 0)


def list_of_the_enclosing_function(x):
    outs = []

    def add(value):
        outs.append(value)

    while layers.reduce_sum(x * x) < 50:
        x = x * 1.5
        add(x)
    return outs[-1], len(outs)


class Total:
    def __init__(self, value):
        self.value = value
        self.parts = {"last": value}

    def add(self, x):
        if layers.reduce_sum(x) > 0:
            self.value = self.value + x
            self.parts["last"] = x
        else:
            self.value = self.value * 2


def object_with_methods(x):
    total = Total(x)
    for i in range(layers.cast(layers.reduce_sum(layers.ones_like(x)), "int64")):
        total.add(x * i)
    return total.value, total.parts["last"]


def list_bound_anew_and_changed(x):
    pair = [x, x * 2]
    while layers.reduce_sum(pair[0] * pair[0]) < 50:
        pair = [pair[1], pair[0] * 2]
        pair[0] = pair[0] * 1.5
    return pair


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    "function",
    [
        list_given_to_a_function,
        list_of_the_enclosing_function,
        object_with_methods,
        list_bound_anew_and_changed,
    ],
)
def test_lists_and_objects_that_functions_change(function, sign):
    assert_same(function, sign)


class Keeping(dygraph.Layer):
    def __init__(self):
        super().__init__()
        self.fc = dygraph.Linear(2, 2, param_attr=fluid.initializer.Constant(0.5))
        self.begin(None)

    def begin(self, x):
        self.hidden, self.outs, self.named, self.updates = x, [], {"twice": x}, 0

    def update(self, x):
        self.hidden = self.fc(x)
        self.updates += 1
        self.outs.append(self.hidden)
        self.named["twice"] = self.hidden * 2


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("loops", [False, True])
def test_attributes_that_methods_change(loops, sign):
    seen = []
    for declared in (False, True):
        with dygraph.guard():
            net = Keeping()

            def run(x, net=net):
                net.begin(x)
                if loops:
                    while layers.reduce_sum(net.hidden * net.hidden) < 50:
                        net.update(net.hidden * 2)
                elif layers.reduce_sum(x) > 0:
                    net.update(x)
                return net.hidden, net.named["twice"], net.updates, len(net.outs)

            x = to_variable(sign * np.array([[1, 0.5], [0.25, 2]], "float32"))
            x.stop_gradient = False
            found = (declarative(run) if declared else run)(x)
            (layers.reduce_sum(found[0]) + layers.reduce_sum(found[1])).backward()
            numbers = [int(n.numpy().item() if hasattr(n, "numpy") else n) for n in found[2:]]
            weight = net.fc.weight.gradient()
            weight = np.zeros((2, 2)) if weight is None else weight
            seen.append([found[0].numpy(), found[1].numpy(), numbers, x.gradient(), weight])
    for one, other in zip(*seen, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5)
