"""ParamAttr and what stands for one."""

import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.initializer import Constant
from fluidlite.param_attr import ParamAttr, WeightNormParamAttr
from fluidlite.regularizer import L2Decay


def test_defaults_and_kwargs():
    assert vars(ParamAttr()) == {
        "name": None,
        "initializer": None,
        "learning_rate": 1.0,
        "regularizer": None,
        "trainable": True,
        "do_model_average": True,
    }
    assert ParamAttr(name="w", learning_rate=0.5)._to_kwargs() == {
        "name": "w",
        "optimize_attr": {"learning_rate": 0.5},
        "regularizer": None,
        "trainable": True,
        "do_model_average": True,
    }
    start = Constant(1.0)
    assert ParamAttr(initializer=start)._to_kwargs(with_initializer=True)["initializer"] is start


def test_what_stands_for_a_param_attr():
    given = ParamAttr("w")
    assert ParamAttr._to_attr(given) is given
    assert ParamAttr._to_attr("w").name == "w"
    assert ParamAttr._to_attr(None).name is None
    assert ParamAttr._to_attr(True).trainable
    assert ParamAttr._to_attr(False) is False
    start, decay = Constant(1.0), L2Decay(0.1)
    assert ParamAttr._to_attr(start).initializer is start
    assert ParamAttr._to_attr(decay).regularizer is decay
    assert [attr.name for attr in ParamAttr._to_attr(["a", None])] == ["a", None]
    with pytest.raises(TypeError, match="must be a ParamAttr, a name.*got 3 of type int"):
        ParamAttr._to_attr(3)


def test_set_default_initializer_keeps_the_users():
    mine, other = Constant(1.0), Constant(2.0)
    attr = ParamAttr(initializer=mine)
    attr._set_default_initializer(other)
    assert attr.initializer is mine
    attr = ParamAttr()
    attr._set_default_initializer(other)
    assert attr.initializer is other


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("name", 3), ("learning_rate", "fast"), ("learning_rate", True), ("trainable", 1),
        ("do_model_average", None), ("initializer", 0.5), ("regularizer", 0.5),
    ],
)  # fmt: skip
def test_wrong_types_are_named(argument, value):
    with pytest.raises(
        TypeError, match=f"The type of '{argument}' in ParamAttr must be .* but received {value!r}"
    ):
        ParamAttr(**{argument: value})


def test_weight_norm_takes_a_dimension():
    attr = WeightNormParamAttr(dim=1, name="w", learning_rate=0.5)
    assert (attr.dim, attr.name, attr.learning_rate, attr.do_model_average) == (1, "w", 0.5, False)
    assert WeightNormParamAttr().dim is None
    with pytest.raises(TypeError, match="dim of WeightNormParamAttr must be an integer or None, got 'x'"):
        WeightNormParamAttr(dim="x")


def test_parameters_that_are_not_trained_say_nothing_of_gradients():
    """As in Fluid: they have no gradients, but their `stop_gradient` is False."""
    frozen = ParamAttr("w", trainable=False)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        x = fluid.data("x", [-1, 4])
        hidden = layers.fc(x, 3, param_attr=frozen, bias_attr=False)
        loss = layers.mean(layers.fc(hidden, 2, bias_attr=False))
        pairs = fluid.optimizer.SGD(0.1).minimize(loss)[1]
        block = fluid.default_main_program().global_block()
        weights = block.var("w")
        assert (weights.trainable, weights.stop_gradient) == (False, False)
        assert [param.name for param, _ in pairs] == ["fc_1.w_0"]
        assert [op.type for op in block.ops if op.type == "mul_grad"] == ["mul_grad"]
        assert "w@GRAD" not in block.vars
