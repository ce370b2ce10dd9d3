"""Steps of recurrent networks and losses over many classes: what they append, as in Fluid 1.8, and refuse."""

import numpy as np
import pytest

from fluidlite import layers
from fluidlite.base.errors import EnforceNotMet
from fluidlite.base.place import CPUPlace
from fluidlite.data import data
from fluidlite.executor import Executor, Scope, scope_guard


def parameters(programs):
    return {p.name: p.shape for p in programs[0].all_parameters()}


def test_gru_unit(programs):
    x, hidden = data("x", [2, 6], "float32"), data("h", [2, 2], "float32")
    updated, reset, gate = layers.gru_unit(x, hidden, 6, origin_mode=True)
    (op,) = programs[0].global_block().ops
    assert op.outputs == {
        "Gate": ["gru_unit_0.tmp_0"],
        "ResetHiddenPrev": ["gru_unit_0.tmp_1"],
        "Hidden": ["gru_unit_0.tmp_2"],
    }
    assert (updated.name, reset.name, gate.name) == tuple(f"gru_unit_0.tmp_{k}" for k in (2, 1, 0))
    assert (updated.shape, reset.shape, gate.shape) == ((2, 2), (2, 2), (2, 6))
    assert (op.attr("activation"), op.attr("gate_activation"), op.attr("origin_mode")) == (2, 1, True)
    assert parameters(programs) == {"gru_unit_0.w_0": (2, 6), "gru_unit_0.b_0": (1, 6)}


def test_the_rows_of_a_gru_unit_are_those_of_its_input(programs):
    hidden = data("h", [None, 2], "float32")
    updated, reset, gate = layers.gru_unit(data("x", [3, 6], "float32"), hidden, 6)
    assert (updated.shape, reset.shape, gate.shape) == ((3, 2), (3, 2), (3, 6))
    exe = Executor(CPUPlace())
    with scope_guard(Scope()):
        exe.run(programs[1])
        fed = {"x": np.ones((3, 6), "float32"), "h": np.ones((2, 2), "float32")}
        with pytest.raises(EnforceNotMet, match="gru_unit"):
            exe.run(programs[0], feed=fed, fetch_list=[updated])


def test_gru_unit_activations(programs):
    x, hidden = data("x", [2, 6], "float32"), data("h", [2, 2], "float32")
    with pytest.warns(UserWarning, match="computes with tanh and sigmoid as Fluid 1.8 does"):
        layers.gru_unit(x, hidden, 6, activation="relu", bias_attr=False)
    assert list(parameters(programs)) == ["gru_unit_0.w_0"]
    with pytest.raises(ValueError, match="'activation' of gru_unit must be one of"):
        layers.gru_unit(x, hidden, 6, activation="foo")


def test_lstm_unit(programs):
    x, state = data("x", [None, 3], "float32"), data("h", [None, 2], "float32")
    hidden, cell = layers.lstm_unit(x, state, state, forget_bias=0.5)
    assert [op.type for op in programs[0].global_block().ops] == [
        "concat",
        "mul",
        "elementwise_add",
        "lstm_unit",
    ]
    assert (cell.name, hidden.name) == ("lstm_unit_0.tmp_0", "lstm_unit_0.tmp_1")
    assert hidden.shape == (-1, 2) and hidden.op.attr("forget_bias") == 0.5
    assert parameters(programs) == {"fc_0.w_0": (5, 8), "fc_0.b_0": (8,)}
    with pytest.raises(ValueError, match="'hidden_t_prev' of lstm_unit must have 2 dimensions"):
        layers.lstm_unit(x, data("q", [2, 2, 2], "float32"), state)
    for other in ([None, 3], [4, 2]):
        few = data(f"state{other[0]}", [3, 2], "float32")
        with pytest.raises(ValueError, match=r"\[batch, size\] and \[batch, size\], got .*\[3, 2\]"):
            layers.lstm_unit(x, few, data(f"cell{other[0]}", other, "float32"))


@pytest.mark.parametrize("unit", ["dynamic_lstm", "dynamic_gru"])
def test_size_of_nothing(programs, unit):
    x = data("x", [None, 8], "float32", lod_level=1)
    with pytest.raises(
        ZeroDivisionError, match=r"'\w+_0.w_0' of shape \[0, 0\] has none; give the layer a positive"
    ):
        getattr(layers, unit)(x, 0)


def test_row_conv(programs):
    out = layers.row_conv(data("x", [None, 3], "float32", lod_level=1), 2, act="relu")
    assert out.name == "row_conv_0.tmp_1" and out.op.type == "relu"
    assert parameters(programs) == {"row_conv_0.w_0": (3, 3)}


def test_spectral_norm(programs):
    weight = data("w", [4, 3, 2], "float32")
    out = layers.spectral_norm(weight, dim=1, power_iters=2)
    assert out.name == "_generated_var_0" and out.shape == (4, 3, 2)
    assert parameters(programs) == {"spectral_norm_0.w_0": (3,), "spectral_norm_0.w_1": (8,)}
    assert all(p.stop_gradient for p in programs[0].all_parameters())
    assert {op.type for op in programs[1].global_block().ops} == {"gaussian_random"}


def test_nce(programs):
    x, label = data("x", [None, 3], "float32"), data("l", [None, 2], "int64")
    cost = layers.nce(x, label, 7, num_neg_samples=4, sampler="log_uniform", seed=3)
    op, scale = programs[0].global_block().ops
    assert op.outputs == {
        "Cost": ["nce_0.tmp_0"],
        "SampleLogits": ["nce_0.tmp_1"],
        "SampleLabels": ["nce_0.tmp_2"],
    }
    assert scale.type == "scale" and scale.attr("scale") == pytest.approx(0.2) and cost.shape == (-1, 1)
    assert (op.attr("sampler"), op.attr("seed"), op.attr("num_total_classes")) == (1, 3, 7)
    assert parameters(programs) == {"nce_0.w_0": (7, 3), "nce_0.b_0": (7, 1)}
    with pytest.raises(ValueError, match="'sampler' of nce must be one of"):
        layers.nce(x, label, 7, sampler="foo")


def test_nce_draws_by_given_probabilities(programs):
    x, label = data("x", [None, 3], "float32"), data("l", [None, 1], "int64")
    chances = [0.1, 0.2, 0.3, 0.15, 0.25]
    layers.nce(x, label, 5, num_neg_samples=3000, sampler="custom_dist", custom_dist=chances, seed=9)
    feed = {"x": np.zeros((2, 3), "float32"), "l": np.zeros((2, 1), "int64")}
    with scope_guard(Scope()):
        executor = Executor(CPUPlace())
        executor.run(programs[1])
        (drawn,) = executor.run(programs[0], feed=feed, fetch_list=["nce_0.tmp_2"])
    shares = np.bincount(drawn[:, 1:].ravel(), minlength=5) / 6000
    np.testing.assert_allclose(shares, chances, atol=0.02)
    with pytest.raises(ValueError, match="must have one probability for each of 6 classes"):
        layers.nce(x, label, 6, sampler="custom_dist", custom_dist=chances)


def test_hsigmoid(programs):
    x, label = data("x", [None, 3], "float32"), data("l", [None, 1], "int64")
    cost = layers.hsigmoid(x, label, 6)
    assert cost.name == "hierarchical_sigmoid_0.tmp_0" and cost.shape == (-1, 1)
    assert parameters(programs) == {
        "hierarchical_sigmoid_0.w_0": (5, 3),
        "hierarchical_sigmoid_0.b_0": (5, 1),
    }
    with pytest.raises(ValueError, match="num_classes must not be less than 2"):
        layers.hsigmoid(x, label, 1)
    with pytest.raises(ValueError, match="'path_table' and 'path_code' of hsigmoid must be given"):
        layers.hsigmoid(x, label, 6, is_custom=True)


def test_hsigmoid_along_given_paths(programs):
    x, label = data("x", [None, 3], "float32"), data("l", [None, 1], "int64")
    table, code = data("t", [None, 3], "int64"), data("c", [None, 3], "int64")
    cost = layers.hsigmoid(x, label, 6, is_custom=True, path_table=table, path_code=code, bias_attr=False)
    assert cost.op.inputs["PathTable"] == ["t"] and cost.op.inputs["PathCode"] == ["c"]
    assert parameters(programs) == {"hierarchical_sigmoid_0.w_0": (6, 3)}


def test_warpctc(programs):
    logits, label = data("x", [5, 2, 4], "float32"), data("l", [2, 3], "int32")
    lengths = [data(name, [2], "int64") for name in ("xl", "ll")]
    loss = layers.warpctc(logits, label, 0, True, *lengths)
    assert loss.name == "warpctc_0.tmp_0" and loss.shape == (2, 1)
    assert loss.op.outputs == {"Loss": ["warpctc_0.tmp_0"], "WarpCTCGrad": ["warpctc_0.tmp_1"]}
    with pytest.raises(ValueError, match="'input_length' and 'label_length' of warpctc come together"):
        layers.warpctc(logits, label, input_length=lengths[0])
