"""fake_quantize_* and what makes real numbers of integers again; recorded numbers are those of Fluid 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

X = np.array([[0.5, -0.5, 0.0, 0.1795327], [-1.25, 0.61, -0.2496511, 1.8546511]], "float32")
W = np.random.default_rng(0).uniform(-1, 1, (3, 2, 2, 2)).astype("float32")
MOVING = ("fake_quantize_moving_average_abs_max", "fake_quantize_dequantize_moving_average_abs_max")


def one(value, dtype="float32"):
    return np.array([value], dtype)


def steps(x, scale, bits=8):
    last = 2 ** (bits - 1) - 1
    exact = np.clip(x.astype("float64"), -scale, scale) * last / scale
    return np.sign(exact) * np.floor(np.abs(exact) + 0.5)


@pytest.mark.parametrize("bits", [8, 4, 16])
def test_abs_max(bits):
    scale = np.abs(X).max()
    want = {"Out": steps(X, scale, bits).astype("float32"), "OutScale": scale.reshape(1)}
    check("fake_quantize_abs_max", {"X": X}, {"bit_length": bits}, want)


@pytest.mark.parametrize("factor", [0, 1e-31])
def test_almost_nothing_becomes_zero(factor):
    out = run_kernel("fake_quantize_abs_max", {"X": X * np.float32(factor)})["Out"][0]
    np.testing.assert_array_equal(out, np.zeros_like(X))


def test_channels_have_scales_of_their_own():
    scale = np.abs(W).reshape(3, -1).max(axis=1)
    want = np.stack([steps(w, s) for w, s in zip(W, scale, strict=True)]).astype("float32")
    check("fake_channel_wise_quantize_abs_max", {"X": W}, {}, {"Out": want, "OutScale": scale})


@pytest.mark.parametrize("op_type", MOVING)
def test_moving_averages(op_type):
    given = {"X": X, "InScale": one(0.7), "InAccum": one(1.5), "InState": one(1.2)}
    accum, state = 0.8 * 1.5 + np.abs(X).max(), 0.8 * 1.2 + 1
    for is_test, scale in ((False, accum / state), (True, 0.7)):
        out = steps(X, scale, 5)
        if "dequantize" in op_type:
            out = out * scale / 15
        sums = {} if is_test else {"OutState": one(state), "OutAccum": one(accum)}
        attrs = {"moving_rate": 0.8, "bit_length": 5, "is_test": is_test}
        check(op_type, given, attrs, {"Out": out.astype("float32"), "OutScale": one(scale), **sums})
    with pytest.raises(OperatorError, match="needs InAccum and InState unless is_test is set"):
        run_kernel(op_type, {"X": X, "InScale": one(0.7)})


def test_the_observer_leaves_x_alone():
    accum, state = 0.9 * 1.5 + np.abs(X).max(), 0.9 * 1.2 + 1
    want = {"Out": X, "OutScale": one(accum / state), "OutState": one(state), "OutAccum": one(accum)}
    check("moving_average_abs_max_scale", {"X": X, "InAccum": one(1.5), "InState": one(1.2)}, {}, want)


def ran(op_type, attrs, states, outputs, batches, inputs=()):
    """The states after each of the batches, run by one program that keeps them."""
    main, scope, exe, after = fluid.Program(), fluid.Scope(), fluid.Executor(), []
    with fluid.scope_guard(scope), fluid.program_guard(main):
        block = main.global_block()
        named = {}
        for name, value in states.items():
            scope.var(name).get_tensor().set(value)
            named[name] = block.create_var(
                name=name, shape=value.shape, dtype=str(value.dtype), persistable=True
            )
        x, out = fluid.data("x", X.shape), block.create_var(name="out", dtype="float32")
        block.append_op(
            type=op_type,
            inputs={"X": x, **{slot: named[name] for slot, name in inputs}},
            outputs={"Out": out, **{slot: named[name] for slot, name in outputs}},
            attrs=attrs,
        )
        for batch in batches:
            made = exe.run(main, feed={"x": batch}, fetch_list=[out])[0]
            after.append((made, {name: np.array(scope.find_var(name).get_tensor()) for name in states}))
    return after


@pytest.mark.parametrize("mode", ["plan", "interpret"])
def test_the_observer_keeps_its_scale_in_tests(mode, monkeypatch):
    monkeypatch.setenv("FLUIDLITE_ENGINE", mode)
    ((out, states),) = ran(
        "moving_average_abs_max_scale", {"is_test": True}, {"scale": one(3.5)}, [("OutScale", "scale")], [X]
    )
    np.testing.assert_array_equal(out, X)
    assert states["scale"] == 3.5


@pytest.mark.parametrize("mode", ["plan", "interpret"])
def test_a_window_of_largest_values(mode, monkeypatch):
    monkeypatch.setenv("FLUIDLITE_ENGINE", mode)
    states = {"scale": one(0.7), "window": np.zeros(2, "float32"), "turn": one(0, "int64")}
    inputs, outputs = (
        [("InScale", "scale"), ("Iter", "turn")],
        [("OutScale", "scale"), ("OutScales", "window")],
    )
    batches = [X, X / 2, X / 4]
    window, scale, largest = np.zeros(2), 0.7, np.abs(X).max()
    for step, batch in enumerate(batches):
        now = largest / 2**step
        dropped, window[step % 2] = window[step % 2], now
        scale = now if now > scale else window[: min(step, 2)].max() if dropped == scale else scale
        states["turn"][0] = step
        ((out, states),) = ran(
            "fake_quantize_range_abs_max", {"window_size": 2}, states, outputs, [batch], inputs
        )
        np.testing.assert_array_equal(out, steps(batch, scale))
        np.testing.assert_allclose(states["window"], window, rtol=1e-6)
        assert states["scale"] == pytest.approx(scale)
    ((out, after),) = ran(
        "fake_quantize_range_abs_max", {"window_size": 2, "is_test": True}, states, outputs, [X], inputs
    )
    np.testing.assert_array_equal(out, steps(X, scale))
    np.testing.assert_array_equal(after["window"], states["window"])


def test_a_window_needs_iter():
    with pytest.raises(OperatorError, match="Iter is missing; only is_test needs none"):
        run_kernel("fake_quantize_range_abs_max", {"X": X, "InScale": one(1)})
    with pytest.raises(OperatorError, match="window_size must be positive, got 0"):
        infer("fake_quantize_range_abs_max", {"X": X, "InScale": one(1)}, {"window_size": 0})


def test_dequantize():
    q = np.round(X * 60)
    check(
        "fake_dequantize_max_abs", {"X": q, "Scale": one(0.8)}, {"max_range": 127.0}, {"Out": q * 0.8 / 127}
    )
    small = q.astype("int8")
    want = (q * 0.8 / 127).astype("float32")
    check("dequantize_abs_max", {"X": small, "Scale": one(0.8)}, {"max_range": 127.0}, {"Out": want})
    table = np.linspace(0.5, 2, 128, dtype="float32")
    places = np.array([[0, 5, -5], [127, -128, -1]], "int8")
    want = np.array([[table[0], table[5], -table[123]], [table[127], -table[0], -table[127]]])
    check("dequantize_log", {"X": places, "Dict": table}, {}, {"Out": want})
    with pytest.raises(OperatorError, match="X must be int8"):
        infer("dequantize_log", {"X": X, "Dict": table})


def test_dequantize_channels():
    q = np.round(W * 90)
    first, second = np.array([0.5, 1, 2], "float32"), np.array([0.5, 2], "float32")
    want = q * first[:, None, None, None] / 7
    check(
        "fake_channel_wise_dequantize_max_abs",
        {"X": q, "Scales": [first]},
        {"quant_bits": [4]},
        {"Out": want},
    )
    want = q * second[None, :, None, None] * 3 / (127 * 15)
    given = {"X": q, "Scales": [second, one(3)]}
    check("fake_channel_wise_dequantize_max_abs", given, {"quant_bits": [8, 5]}, {"Out": want})
    with pytest.raises(OperatorError, match="an element for each entry of dimension 0 of X, got \\[2\\]"):
        infer("fake_channel_wise_dequantize_max_abs", {"X": q, "Scales": [second]})
