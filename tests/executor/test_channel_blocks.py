"""Blocked layouts of images: which variables have them, and that results are those of plain layouts."""

import gc
import weakref

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite._ext import kernels
from fluidlite.executor.compile import compile_for_cpu
from fluidlite.executor.ir.request import Request

from ..engines import run_by

RANDOM = np.random.RandomState(5)
IMAGES = RANDOM.rand(6, 3, 12, 12).astype("float32")

pytestmark = pytest.mark.skipif(not kernels.available("conv2d.f32"), reason="needs oneDNN")
BLOCKS = {"avx512": 16, "avx2": 8}


@pytest.fixture(params=[name for name in BLOCKS if name in kernels.targets()])
def block(request):
    """The channels of a block, for each instruction set that has some."""
    before = kernels.used()
    kernels.use(request.param)
    yield BLOCKS[request.param]
    kernels.use(before)


def convolved(x, filters, size=3, stride=1, act="relu", groups=1):
    x = layers.conv2d(x, filters, size, stride, size // 2, groups=groups, bias_attr=False)
    return layers.batch_norm(x, act=act)


def residual(x):
    out = convolved(x, 16)
    for filters, stride in ((16, 1), (32, 2)):
        straight = out if stride == 1 else convolved(out, filters, 1, stride, None)
        bent = convolved(convolved(out, filters, 3, stride), filters, act=None)
        out = layers.elementwise_add(straight, bent, act="relu")
    return layers.pool2d(out, pool_type="avg", global_pooling=True)


def depthwise(x):
    out = convolved(convolved(x, 32), 32, groups=32)
    return layers.pool2d(convolved(out, 32, 1), 3, "max", 2, 1)


def biased(x):
    for _ in range(3):
        x = layers.conv2d(x, 32, 3, padding=1, act="relu")
    return layers.pool2d(x, 2, "avg", 2)


def with_others(x):
    """Branches that meet where no kernel takes blocks, channels that fill none, and an activation of its own."""
    a, b = convolved(convolved(x, 32), 32), convolved(x, 20, act="tanh")
    out = layers.concat([layers.dropout(convolved(a, 32), 0.2, seed=3), b], 1)
    return layers.prelu(convolved(convolved(out, 48), 16), "all")


def side_by_side(x):
    """Images are joined and parted by channels, and along another axis, which takes no blocks."""
    a = convolved(x, 32)
    a = layers.concat([convolved(a, 16), convolved(a, 32, 1)], 1)
    b, c = layers.split(convolved(a, 48), [16, 32], 1)
    b, c = convolved(b, 16), convolved(c, 16)
    return convolved(layers.concat([b, c], 2), 16)


NETWORKS = [residual, depthwise, biased, with_others, side_by_side]


def trained(network, batches=(6, 4, 6), steps=3, compiled=None):
    """Losses of a few steps, what parameters are then, and the description of the program."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 2
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 3, 12, 12])
        loss = layers.reduce_mean(layers.square(layers.fc(network(x), 4)))
        fluid.optimizer.Momentum(1e-3, 0.9).minimize(loss)
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        program = main if compiled is None else compiled(main, loss)
        losses = [
            exe.run(program, feed={"x": IMAGES[:n]}, fetch_list=[loss])[0].mean()
            for n in batches
            for _ in range(steps)
        ]
        scope = fluid.global_scope()
        values = {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()}
        return losses, values, exe.describe(main)


def by_operators(fetched, program=None):
    """The results of the interpreter, by default for the default program."""
    with run_by("interpret"):
        program = (program or fluid.default_main_program()).clone()  # for which there is no plan
        return fluid.Executor().run(program, {"x": IMAGES}, [var.name for var in fetched])


def same(found, wanted, tolerance=2e-4):
    assert np.isfinite(wanted[0]).all()
    np.testing.assert_allclose(found[0], wanted[0], rtol=tolerance)
    for name, value in found[1].items():
        np.testing.assert_allclose(value, wanted[1][name], rtol=1e-2, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("network", NETWORKS)
def test_steps_are_those_without(network, block, monkeypatch):
    found = trained(network)
    assert f"images in blocks of {block} channels: " in found[2]
    assert found[2].count(" on the CPU for ") == 1  # one plan for all batches
    monkeypatch.setenv("FLUIDLITE_WITHOUT_PASSES", "channel_blocks")
    without = trained(network)
    assert "images in blocks" not in without[2]
    same(found, without)


@pytest.mark.parametrize("network", NETWORKS)
def test_steps_repeat(network, block):
    first, again = trained(network), trained(network)
    assert first[0] == again[0]
    for name, value in first[1].items():
        np.testing.assert_array_equal(value, again[1][name])


@pytest.mark.parametrize("network, orders", [(residual, 0), (biased, 2), (depthwise, 2)])
def test_only_what_takes_no_blocks_gets_others(network, orders, block):
    """The result of pooling, before it is multiplied, and its gradient behind that."""
    (line,) = [line for line in trained(network, [6], 1)[2].splitlines() if "images in blocks" in line]
    assert line.partition(", ")[2] == (f"{orders} reorders" if orders else "")


def test_sizes_that_calls_do_not_mean(block):
    """Images that are normalised as if channels were last, or get a bias for each place, stay as they are."""
    x = fluid.data("x", [None, 3, 12, 12])
    first = layers.conv2d(x, 16, 3, padding=1)
    first = layers.conv2d(first, 16, 5, padding=0)  # [N, 16, 8, 8]
    last = layers.batch_norm(first, data_layout="NHWC")
    random = fluid.initializer.Uniform(-1, 1, 3)
    places = layers.create_parameter([16, 8, 8], "float32", default_initializer=random)
    added = layers.elementwise_add(
        layers.conv2d(layers.relu(layers.conv2d(last, 16, 1)), 16, 1), places, axis=1
    )
    out = layers.conv2d(added, 32, 3)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    (found,) = exe.run(feed={"x": IMAGES}, fetch_list=[out])
    (wanted,) = by_operators([out])
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_several_places(block, monkeypatch):
    monkeypatch.setenv("CPU_NUM", "2")

    def compiled(main, loss):
        return fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name)

    found = trained(biased, [6], compiled=compiled)
    monkeypatch.setenv("FLUIDLITE_WITHOUT_PASSES", "channel_blocks")
    same(found, trained(biased, [6], compiled=compiled))


def test_what_is_fetched_stays_as_it_is(block):
    x = fluid.data("x", [None, 3, 12, 12])
    first = layers.conv2d(x, 32, 3, padding=1, bias_attr=False)
    second = layers.relu(layers.conv2d(layers.relu(first), 32, 3, padding=1))
    last = layers.conv2d(second, 32, 3, padding=1)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fetched = [first, last]
    found = exe.run(feed={"x": IMAGES}, fetch_list=fetched)
    assert "images in blocks" in exe.describe()
    for got, wanted in zip(found, by_operators(fetched), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_what_is_not_a_number_goes_through(block):
    x = fluid.data("x", [None, 3, 12, 12])
    out = layers.relu(layers.conv2d(layers.relu(layers.conv2d(x, 32, 3, padding=1)), 32, 3, padding=1))
    out = layers.conv2d(layers.conv2d(out, 16, 1, act="relu"), 32, 1, act="relu")
    image = layers.reduce_sum(layers.conv2d(out, 32, 1), dim=[1, 2, 3])
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    images = IMAGES.copy()
    images[1, 0, 3, 3] = np.nan
    (sums,) = exe.run(feed={"x": images}, fetch_list=[image])
    assert "images in blocks" in exe.describe()
    np.testing.assert_array_equal(np.isnan(sums), np.arange(6) == 1)


@pytest.mark.parametrize("network", NETWORKS)
def test_inference(network, block):
    """Convolutions that normalise by moving statistics, with an activation or without."""
    x = fluid.data("x", [None, 3, 12, 12])
    out = layers.fc(network(x), 4)
    program = fluid.default_main_program().clone(for_test=True)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for k, var in enumerate(fluid.default_main_program().list_vars()):
        if "batch_norm" in var.name and var.persistable:  # no zeros and ones
            numbers = np.random.RandomState(k).uniform(0.5, 1.5, var.shape).astype("float32")
            fluid.global_scope().find_var(var.name).get_tensor().set(numbers, fluid.CPUPlace())
    (found,) = exe.run(program, feed={"x": IMAGES}, fetch_list=[out])
    assert f"images in blocks of {block} channels" in exe.describe(program)
    (wanted,) = by_operators([out], program)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4 * abs(wanted).max())


def test_small_images_and_other_instruction_sets_have_none():
    def small(x):
        return convolved(convolved(layers.pool2d(x, 4, "max", 4), 32), 32)

    assert "images in blocks" not in trained(small, [6], 1)[2]
    before = kernels.used()
    kernels.use("baseline" if "baseline" in kernels.targets() else before)
    try:
        if kernels.used() not in BLOCKS:
            assert "images in blocks" not in trained(residual, [6], 1)[2]
    finally:
        kernels.use(before)


def test_a_plan_goes_with_what_holds_it(block):
    """Not when the collector comes by: its memory is that of a step."""
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    out = residual(fluid.data("x", [None, 3, 12, 12], "float32"))
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        fluid.Executor(fluid.CPUPlace()).run(startup)
    plan = compile_for_cpu(Request(main, scope, {"x": IMAGES}, [out.name]))
    assert "images in blocks" in plan.describe()
    gone = weakref.ref(plan)
    gc.collect()
    gc.disable()
    try:
        del plan
        assert gone() is None
    finally:
        gc.enable()
