"""Fusion of launches on a GPU; results equal those of the CPU."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fluidlite import layers, optimizer, regularizer
from fluidlite.base.place import CPUPlace, CUDAPlace
from fluidlite.executor import Executor, Scope, global_scope, scope_guard
from fluidlite.executor.compile import compile_plan
from fluidlite.executor.feeding import as_feed, expanded
from fluidlite.executor.ir.request import Request
from fluidlite.framework import Program, default_main_program, default_startup_program
from fluidlite.param_attr import ParamAttr

pytestmark = pytest.mark.usefixtures("alone")


def data(width=8):
    return layers.data("x", [width]), layers.data("y", [width])


def network(act="relu", depth=3, width=8):
    """A stack of layers; returns its loss."""
    x, y = data(width)
    for k in range(depth):
        x = layers.fc(x, width, act=act if k < depth - 1 else None)
    return layers.mean(layers.square_error_cost(x, y))


def batches(steps=4, rows=4, width=8):
    random = np.random.default_rng(0)
    return [{name: random.random((rows, width), "float32") for name in ("x", "y")} for _ in range(steps)]


def train(place, fetches, feeds):
    """The fetched values of each step, and the persistable variables after the last one."""
    main = default_main_program()
    with scope_guard(Scope()):
        executor = Executor(place)
        executor.run(default_startup_program())
        steps = [executor.run(main, feed=feed, fetch_list=list(fetches)) for feed in feeds]
        persistable = [var.name for var in main.list_vars() if var.persistable]
        found = {name: np.array(global_scope().find_var(name).get_tensor()) for name in persistable}
    return steps, found


def agree(fetches, feeds=None):
    """Assert that training on the GPU gives the results of the CPU."""
    feeds = batches() if feeds is None else feeds
    mine, persistable = train(CUDAPlace(0), fetches, feeds)
    theirs, expected = train(CPUPlace(), fetches, feeds)
    for step, (left, right) in enumerate(zip(mine, theirs, strict=True)):
        for name, a, b in zip(fetches, left, right, strict=True):
            np.testing.assert_allclose(a, b, 2e-4, 1e-5, err_msg=f"{name} in step {step}")
    assert persistable.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(persistable[name], array, 2e-4, 1e-5, err_msg=name)


def joined(fetches=(), feed=None, program: Program | None = None):
    """For each launch of a plan the types of its operators with their counts."""
    from fluidlite.backend.cupy_.device import device

    main = default_main_program() if program is None else program
    with scope_guard(Scope()):
        Executor(CUDAPlace(0)).run(default_startup_program())
        feed = expanded(as_feed(main, batches(1)[0] if feed is None else feed))
        names = [fetch if isinstance(fetch, str) else fetch.name for fetch in fetches]
        plan = compile_plan(Request(main, global_scope(), feed, names, device=device(0)))
        return [Counter(op.type for op in each.ops) for each in plan.instructions]


def test_five_small_layers_with_adam_take_few_kernels(simulation):
    loss = network(depth=5)
    optimizer.Adam(0.01).minimize(loss)
    main, startup = default_main_program(), default_startup_program()
    executor = Executor(CUDAPlace(0))
    executor.run(startup)
    feeds = batches(4)
    for feed in feeds[:3]:
        executor.run(main, feed=feed, fetch_list=[loss])
    simulation.counters.reset()
    executor.run(main, feed=feeds[3], fetch_list=[loss])
    assert (simulation.counters.graph_launches, simulation.counters.syncs) == (1, 1)
    assert simulation.counters.launches == 0, "all is in the graph"
    found = joined([loss])
    assert len(found) <= 20
    assert found.count(Counter(mul=1, elementwise_add=1, relu=1)) == 4
    assert found.count(Counter(relu_grad=1, elementwise_add_grad=1, mul_grad=1)) == 4
    assert Counter(adam=10) in found
    with_loss = [loss.name]
    agree(with_loss, feeds)


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("act", ["relu", "tanh", "sigmoid"])
def test_fused_layers_give_the_same_results(act):
    loss = network(act)
    optimizer.SGD(0.1).minimize(loss)
    assert Counter({"mul": 1, "elementwise_add": 1, act: 1}) in joined([loss])
    agree([loss.name])


@pytest.mark.usefixtures("cuda")
def test_large_layers():
    loss = network("tanh", width=150)
    optimizer.SGD(0.1).minimize(loss)
    feeds = batches(3, rows=300, width=150)
    assert Counter(tanh_grad=1, elementwise_add_grad=1, mul_grad=1) in joined([loss], feeds[0])
    agree([loss.name], feeds)


@pytest.mark.usefixtures("cuda")
def test_fetched_variables_are_computed():
    loss = network()
    optimizer.SGD(0.1).minimize(loss)
    inner = ["fc_0.tmp_0", "fc_1.tmp_1", "fc_0.tmp_1@GRAD", "fc_1.tmp_0@GRAD"]
    found = joined([loss, *inner])
    assert Counter(mul=1) in found
    assert Counter(mul=1, elementwise_add=1) in found
    assert Counter(relu_grad=1) in found
    agree([loss.name, *inner])


@pytest.mark.usefixtures("cuda")
def test_variables_with_other_readers_are_computed():
    x, y = data()
    before = layers.fc(x, 8)
    hidden = layers.relu(before)
    loss = layers.mean(layers.square_error_cost(hidden + layers.tanh(before), y))
    optimizer.SGD(0.1).minimize(loss)
    assert Counter(mul=1, elementwise_add=1, relu=1) not in joined([loss])
    agree([loss.name])


@pytest.mark.usefixtures("cuda")
def test_sums_that_are_no_bias_are_not_fused():
    x, y = data()
    wide = layers.create_parameter([8, 8], "float32")
    across = layers.create_parameter([4, 1], "float32")
    product = layers.elementwise_add(layers.mul(x, wide), y)
    product = layers.elementwise_add(layers.mul(product, wide), layers.expand(across, [1, 8]))
    loss = layers.mean(layers.matmul(product, wide, transpose_y=True, alpha=0.5) + y)
    optimizer.SGD(0.1).minimize(loss)
    assert not [each for each in joined([loss]) if each["elementwise_add"] and len(each) > 1]
    agree([loss.name])


@pytest.mark.usefixtures("cuda")
def test_matmul_with_bias():
    x, y = data()
    w, bias = layers.create_parameter([8, 8], "float32"), layers.create_parameter([8], "float32")
    batch = layers.reshape(x, [-1, 2, 8])
    hidden = layers.sigmoid(layers.matmul(batch, w) + bias)
    loss = layers.mean(layers.square_error_cost(layers.reshape(hidden, [-1, 8]), y))
    optimizer.Momentum(0.1, 0.9).minimize(loss)
    feed = batches(3)
    found = joined([loss], feed[0])
    assert Counter(matmul=1, elementwise_add=1, sigmoid=1) in found
    assert Counter(sigmoid_grad=1, elementwise_add_grad=1, matmul_grad=1) in found
    agree([loss.name], feed)


@pytest.mark.usefixtures("cuda")
def test_a_shared_layer():
    x, y = data()
    names = {"param_attr": ParamAttr(name="w"), "bias_attr": ParamAttr(name="b")}
    hidden = layers.fc(layers.fc(x, 8, act="relu", **names), 8, act="tanh", **names)
    loss = layers.mean(layers.square_error_cost(hidden, y))
    optimizer.Adagrad(0.1).minimize(loss)
    assert Counter(adagrad=2) in joined([loss])
    agree([loss.name])


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            lambda decay: optimizer.Momentum(0.1, 0.9, regularization=decay),
            Counter(momentum=6, scale=6, sum=6),
        ),
        (lambda decay: optimizer.Adamax(0.1, regularization=decay), Counter(adamax=6, scale=12, sum=6)),
        (lambda decay: optimizer.RMSProp(0.01, regularization=decay), Counter(rmsprop=6, scale=6, sum=6)),
    ],
)
def test_weight_decay_is_part_of_the_update(make, expected):
    loss = network("tanh")
    make(regularizer.L2Decay(0.1)).minimize(loss)
    assert expected in joined([loss])
    agree([loss.name])


@pytest.mark.usefixtures("cuda")
def test_a_gradient_that_is_fetched_includes_its_decay():
    loss = network()
    optimizer.SGD(0.1, regularization=regularizer.L2Decay(0.1)).minimize(loss)
    found = joined([loss, "fc_0.w_0@GRAD"])
    assert Counter(sgd=6, scale=5, sum=5) in found
    agree([loss.name, "fc_0.w_0@GRAD"])


@pytest.mark.usefixtures("cuda")
def test_other_penalties_are_not_fused():
    loss = network()
    optimizer.SGD(0.1, regularization=regularizer.L1Decay(0.1)).minimize(loss)
    assert Counter(sgd=6) in joined([loss])
    agree([loss.name])


@pytest.mark.usefixtures("cuda")
def test_updates_with_different_constants_are_separate_launches():
    x, y = data()
    hidden = layers.fc(x, 8, param_attr=ParamAttr(learning_rate=0.1))
    first = layers.mean(layers.square_error_cost(hidden, y))
    optimizer.Adam(0.01).minimize(first)
    second = layers.mean(layers.square_error_cost(layers.fc(hidden, 8), y))
    optimizer.Adam(0.01, beta1=0.5).minimize(second)
    found = joined([first, second])
    assert [each for each in found if each["adam"]] == [Counter(adam=2), Counter(adam=4)]
    agree([first.name, second.name])


@pytest.mark.usefixtures("cuda")
def test_an_update_comes_before_readers_of_the_parameter():
    x, y = data()
    w = layers.create_parameter([8, 8], "float32", name="w")
    v = layers.create_parameter([8, 8], "float32", name="v")
    rate = layers.fill_constant([1], "float32", 0.5)
    block = default_main_program().global_block()

    def descend(param, by):
        slots = {"Param": [param], "Grad": [by], "LearningRate": [rate]}
        block.append_op("sgd", inputs=slots, outputs={"ParamOut": [param]}, attrs={})

    descend(w, v)
    seen = layers.scale(w, 2.0)
    descend(v, w)
    descend(w, v)
    out = layers.mean(layers.mul(x, seen) - y)
    assert [each["sgd"] for each in joined([out])].count(1) == 3
    agree([out.name, seen.name, "w", "v"])


@pytest.mark.parametrize("lazy", [True, False])
def test_sparse_updates_are_separate_and_captured(simulation, lazy):
    ids = layers.data("ids", [1], dtype="int64")
    y = layers.data("y", [8])
    rows = layers.embedding(ids, [20, 8], is_sparse=True)
    loss = layers.mean(layers.square_error_cost(layers.fc(rows, 8), y))
    optimizer.Adam(0.1, lazy_mode=lazy).minimize(loss)
    random = np.random.default_rng(1)
    feeds = [{"ids": random.integers(0, 20, (6, 1)), "y": random.random((6, 8), "float32")} for _ in range(3)]
    found = joined([loss], feeds[0])
    assert Counter(adam=1) in found
    assert Counter(adam=2) in found
    agree([loss.name], feeds)
    assert simulation.counters.graph_launches == 2


@pytest.mark.usefixtures("cuda")
def test_arrays_that_the_kernel_does_not_take_are_updated_one_by_one():
    loss = network(depth=2)
    optimizer.Momentum(0.1, 0.9, regularization=regularizer.L2Decay(0.1)).minimize(loss)
    from fluidlite.backend.cupy_.launchers import updates

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(updates, "fits", lambda *given: False)
        agree([loss.name])
