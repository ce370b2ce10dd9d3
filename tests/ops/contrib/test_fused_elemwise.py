"""fused_elemwise_activation, partial_concat and partial_sum."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer

RNG = np.random.default_rng(0)
X, Y = (RNG.uniform(-1, 1, (3, 4)).astype("float32") for _ in range(2))
UNARY = {
    "scale": lambda x: np.float32(0.3) * x,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
BINARY = {"elementwise_add": np.add, "elementwise_mul": np.multiply}
LAST = [(Y, Y, -1), (Y[0], Y[0], -1), (Y[:, 0], Y[:, :1], 0)]


@pytest.mark.parametrize("unary", UNARY)
@pytest.mark.parametrize("binary", BINARY)
@pytest.mark.parametrize("which", range(3))
def test_fused_elemwise_activation(unary, binary, which):
    y, wide, axis = LAST[which]
    for names, between in (([binary, unary], UNARY[unary](y)), ([unary, binary], BINARY[binary](X, wide))):
        out = BINARY[binary](X, UNARY[unary](wide)) if names[0] == binary else UNARY[unary](between)
        attrs = {"functor_list": names, "scale": 0.3, "axis": axis, "save_intermediate_out": which != 1}
        check(
            "fused_elemwise_activation",
            {"X": X, "Y": y},
            attrs,
            {"Out": out, "IntermediateOut": between},
            grads=["X", "Y"],
        )


@pytest.mark.parametrize("names", [["relu", "relu"], ["elementwise_sub", "relu"], ["relu"]])
def test_functions_that_do_not_go_together(names):
    with pytest.raises(OperatorError, match="functor_list must name one of elementwise_add"):
        infer("fused_elemwise_activation", {"X": X, "Y": Y}, {"functor_list": names})


def test_the_layer_takes_names_with_a_comma(programs):
    x, y = fluid.data("x", [3, 4]), fluid.data("y", [3, 4])
    out = fluid.contrib.layers.fused_elemwise_activation(x, y, "relu,elementwise_add")
    (made,) = fluid.Executor().run(feed={"x": X, "y": Y}, fetch_list=[out])
    with pytest.raises(ValueError, match="the length should be 2"):
        fluid.contrib.layers.fused_elemwise_activation(x, y, ["relu"])
    np.testing.assert_array_equal(made, np.maximum(X + Y, 0))


@pytest.mark.parametrize(("start", "length"), [(0, -1), (1, 2), (2, -1), (3, 1), (-2, 2)])
def test_columns(start, length):
    end = 4 if length < 0 or start < 0 else start + length
    parts = [X[:, start % 4 : end], Y[:, start % 4 : end]]
    attrs = {"start_index": start, "length": length}
    given = {"X": [X, Y]}
    check("partial_concat", given, attrs, {"Out": np.concatenate(parts, axis=1)}, grads=["X"])
    if start >= 0:
        check("partial_sum", given, attrs, {"Out": parts[0] + parts[1]}, grads=["X"])


def test_columns_that_there_are_not():
    for attrs in ({"start_index": 4}, {"start_index": 3, "length": 2}, {"start_index": -5}):
        with pytest.raises(OperatorError, match=r"start_index must be in \[-4, 4\)"):
            infer("partial_concat", {"X": [X, Y]}, attrs)
    with pytest.raises(OperatorError, match=r"start_index must be in \[0, 4\)"):
        infer("partial_sum", {"X": [X, Y]}, {"start_index": -1})
    with pytest.raises(OperatorError, match="X must be matrices"):
        infer("partial_sum", {"X": [X, Y[:, :3]]})


def test_layers_of_columns(programs):
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 4])
    outs = [fluid.contrib.layers.partial_concat([x, y], 1, 2), fluid.contrib.layers.partial_sum([x, y], 1, 2)]
    assert [list(out.shape) for out in outs] == [[-1, 4], [-1, 2]]
    made = fluid.Executor().run(feed={"x": X, "y": Y}, fetch_list=outs)
    np.testing.assert_array_equal(made[0], np.concatenate([X[:, 1:3], Y[:, 1:3]], axis=1))
    np.testing.assert_array_equal(made[1], X[:, 1:3] + Y[:, 1:3])
