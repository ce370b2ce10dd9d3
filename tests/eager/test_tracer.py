"""Names by which programs for Fluid reach inside dygraph mode; see also the recorded case `d_private_names`."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph, dygraph_utils, framework
from fluidlite.base.errors import FeedError
from fluidlite.dygraph.math_op_patch import _varbase_creator


def tensor(value):
    return dygraph.to_variable(np.asarray(value, np.float32))


def test_the_tracer_exists_in_dygraph_mode_only():
    assert framework._dygraph_tracer() is None
    with dygraph.guard():
        tracer = framework._dygraph_tracer()
        assert isinstance(tracer, dygraph.Tracer) and tracer._train_mode
        assert tracer._expected_place == fluid.CPUPlace()
        tracer._train_mode = False
        assert not dygraph.Linear(1, 1)(tensor([[1.0]])).node
        with framework._dygraph_guard(None):
            assert framework._dygraph_tracer() is None


def test_operators_by_name():
    with dygraph.guard():
        a, b, out = tensor([[1.0, 2.0]]), tensor([[3.0], [4.0]]), _varbase_creator(dtype="float32")
        framework._dygraph_tracer().trace_op(
            "matmul", {"X": [a], "Y": [b], "Bias": []}, {"Out": [out]}, {}, True
        )
        assert out.numpy() == [[11.0]] and out.stop_gradient
        given = _varbase_creator(name="mine", shape=[2, 3], dtype="int64")
        assert (given.name, given.shape, given.numpy().dtype) == ("mine", [2, 3], np.int64)


def test_blocks_run_operators():
    """In dygraph mode, code that appends operators to the default program runs them; other programs are built."""
    with dygraph.guard():
        block = fluid.default_main_program().global_block()
        x = tensor([[1.0, 2.0], [3.0, 4.0]])
        x.stop_gradient = False
        total, loss = block.create_var(name="total", dtype="float32", shape=[-1, 2]), block.create_var()
        ran = block.append_op(
            type="reduce_sum", inputs={"X": x}, outputs={"Out": [total]}, attrs={"dim": [0]}
        )
        block._prepend_op(type="mean", inputs={"X": [total]}, outputs={"Out": loss})
        assert (ran.type, total.name, total.numpy().tolist(), loss.numpy()) == (
            "reduce_sum",
            "total",
            [4, 6],
            5,
        )
        assert not block.ops and not block.vars
        loss.backward()
        np.testing.assert_array_equal(x.gradient(), np.full((2, 2), 0.5))
        other = fluid.Program().global_block()
        assert isinstance(other.create_var(name="y", shape=[2], dtype="float32"), fluid.framework.Variable)


def test_gradients_are_shared():
    with dygraph.guard():
        x = tensor([1.0, 2.0])
        x.stop_gradient = False
        assert x._grad_ivar() is None and x._grad_value() is None
        fluid.layers.reduce_sum(x * x).backward()
        x._grad_value().set(np.array([5.0, 6.0], np.float32), fluid.CPUPlace())
        assert x._grad_ivar().numpy().tolist() == [5.0, 6.0] == x.gradient().tolist()
        y = fluid.layers.reduce_sum(x)
        y._run_backward(dygraph.BackwardStrategy(), framework._dygraph_tracer(), False)
        assert x.gradient().tolist() == [1.0, 1.0]


def test_helpers_of_dygraph_mode_refuse_programs():
    with pytest.raises(AssertionError, match=r"_append_bias_in_dygraph.*dygraph.guard\(\)"):
        dygraph_utils._append_bias_in_dygraph(None)
    with pytest.raises(AssertionError, match="needs an eager tensor"):
        framework.fake_interface_only(len)([])


def test_types_that_tensors_do_not_have():
    with dygraph.guard(), pytest.raises(FeedError, match="to_variable.*uint64"):
        dygraph.to_variable(np.zeros(1, np.uint64))
    assert issubclass(FeedError, TypeError) and issubclass(FeedError, fluid.core.EnforceNotMet)


def test_helper_of_a_layer():
    with dygraph.guard():
        layer = dygraph.Linear(2, 2)
        helper = layer._helper
        assert type(helper) is dygraph.layer_object_helper.LayerObjectHelper and helper.name == "linear_0"
        a, b = tensor([1.0]), dygraph.to_variable(np.array([1]))
        assert helper._multiple_input([a, b]) == [a, b] and helper._input(a) is a
        assert [attr.name for attr in helper._multiple_param_attr(2, "w")] == ["w", "w"]
        assert [var for var, _ in helper.iter_inputs_and_params([a])] == [a]
        with pytest.raises(ValueError, match="differ in dtype"):
            helper.input_dtype([a, b])
        with pytest.raises(TypeError, match="linear_0 must be a list, got VarBase"):
            helper.is_instance(a, list)
        assert helper.append_activation(tensor([-1.0, 1.0]), act="relu").numpy().tolist() == [0.0, 1.0]
        assert helper.to_variable(np.ones(1)).shape == [1]
