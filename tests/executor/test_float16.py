"""float16 in programs: stored as such, computed in float32 by native kernels."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers


def run(build, feed, monkeypatch, interpret=False):
    """The values of the variables that `build` returns."""
    if interpret:
        monkeypatch.setenv("FLUIDLITE_ENGINE", "interpret")
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        fetches = build()
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        return exe.run(main, feed=feed, fetch_list=fetches), main, exe.describe(main)


def convolution():
    x = fluid.data("x", [None, 3, 9, 9], "float32")
    x.stop_gradient = False
    half = layers.cast(x, "float16")
    filters = layers.cast(layers.create_parameter([4, 3, 3, 3], "float32"), "float16")
    main = fluid.default_main_program().global_block()
    out = main.create_var(name="conv", dtype="float16")
    main.append_op(type="conv2d", inputs={"Input": half, "Filter": filters}, outputs={"Output": out})
    out = layers.pool2d(layers.relu(out), 2, "avg", 2)
    loss = layers.reduce_sum(layers.cast(out, "float32"))
    (gradient,) = fluid.gradients(loss, x)
    return [out, loss, gradient]


FEED = {"x": np.random.RandomState(1).rand(2, 3, 9, 9).astype("float32")}


@pytest.mark.parametrize("interpret", [False, True])
def test_sums_are_taken_in_float32(interpret, monkeypatch):
    def build():
        x = layers.cast(fluid.data("x", [2, 5000], "float32"), "float16")
        weight = layers.fill_constant([5000, 3], "float16", 1.0)
        return [layers.mul(x, weight)]

    x = np.full((2, 5000), 0.3125, "float32")
    (product,), *_ = run(build, {"x": x}, monkeypatch, interpret)
    assert product.dtype == np.float16
    # Sums in float16 stop growing where an addend is less than half of the last place.
    wanted = np.float16(x.astype("float16").astype("float64").sum(1))
    np.testing.assert_array_equal(product, np.repeat(wanted[:, None], 3, 1))


def test_plans_agree_with_the_interpreter(monkeypatch):
    planned, _, _ = run(convolution, FEED, monkeypatch)
    interpreted, _, _ = run(convolution, FEED, monkeypatch, interpret=True)
    assert planned[0].dtype == interpreted[0].dtype == np.float16
    for ours, theirs in zip(planned, interpreted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=1e-3)


def test_kernels_are_native(monkeypatch):
    _, _, described = run(convolution, FEED, monkeypatch)
    steps = [line for line in described.splitlines() if ") -> " in line]
    assert any("conv2d_grad" in step and "FLOAT@RESULT@" in step for step in steps)
    assert all(step.endswith("native") for step in steps)


def test_what_moves_elements_is_not_cast(monkeypatch):
    def build():
        x = layers.cast(fluid.data("x", [2, 6], "float32"), "float16")
        return [layers.transpose(layers.reshape(x, [2, 3, 2]), [0, 2, 1])]

    (out,), _, described = run(build, {"x": np.arange(12, dtype="float32").reshape(2, 6)}, monkeypatch)
    np.testing.assert_array_equal(out, np.arange(12).reshape(2, 3, 2).transpose(0, 2, 1))
    assert "FLOAT" not in described


def test_sizes_may_change(monkeypatch):
    def build():
        x = layers.cast(fluid.data("x", [None, 4], "float32"), "float16")
        return [layers.relu(layers.scale(x, 2.0))]

    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        (out,) = build()
        exe = fluid.Executor(fluid.CPUPlace())
        for rows in (3, 5, 2):
            x = np.random.RandomState(rows).randn(rows, 4).astype("float16").astype("float32")
            (got,) = exe.run(main, feed={"x": x}, fetch_list=[out])
            np.testing.assert_array_equal(got, np.maximum(2 * x.astype("float16"), 0))
