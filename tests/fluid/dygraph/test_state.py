"""State dicts: `state_dict`, `set_dict`, `set_state_dict`."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.dygraph import BatchNorm, Linear, Sequential

pytestmark = pytest.mark.usefixtures("eager")


def filled(weight=1.0, bias=2.0, dtype="float32"):
    return {"weight": np.full((2, 2), weight, dtype), "bias": np.full(2, bias, dtype)}


def test_state_dict_holds_the_parameters_themselves():
    layer = Linear(2, 2)
    state = layer.state_dict()
    assert state["weight"] is layer.weight and list(state) == ["weight", "bias"]
    assert list(layer.state_dict({"z": 1}, structured_name_prefix="p.")) == ["z", "p.weight", "p.bias"]
    assert list(Sequential(layer).state_dict(include_sublayers=False)) == []


def test_set_dict_copies_into_the_same_memory():
    layer, other = Linear(2, 2), Linear(2, 2)
    memory = other.weight.array
    other.set_dict(layer.state_dict())
    assert other.weight.array is memory and np.array_equal(memory, layer.weight.numpy())
    layer.weight.set_value(np.zeros((2, 2), "float32"))
    assert other.weight.numpy().any()


@pytest.mark.parametrize("method", ["set_dict", "load_dict"])
def test_set_dict_by_names_of_parameters(method):
    layer = Linear(2, 2)
    values = {"linear_0.w_0": np.full((2, 2), 5, "float32"), "linear_0.b_0": np.ones(2, "float32")}
    getattr(layer, method)(values, use_structured_name=False)
    assert layer.weight.numpy().tolist() == [[5, 5], [5, 5]]
    with pytest.raises(RuntimeError, match="use_structured_name is True: True takes names of attributes"):
        getattr(layer, method)(values)


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        ({"weight": np.ones((2, 2), "float32")}, RuntimeError, "no 'bias'; its keys begin with .'weight'"),
        ({}, RuntimeError, r"no 'weight' \(and 1 more\)"),
        ({**filled(), "bias": np.ones(3, "float32")}, AssertionError, "need tensor with shape .2,. but load"),
        (
            {**filled(), "bias": np.ones(2)},
            AssertionError,
            "dtype float32 but load tensor with dtype float64",
        ),
        ({**filled(), "bias": [1, 2]}, AssertionError, "must be a tensor or a NumPy array, got list"),
        (3, TypeError, "maps names to tensors or arrays, got a int"),
    ],
)
def test_set_dict_changes_nothing_when_something_is_wrong(state, error, message):
    layer = Linear(2, 2)
    before = layer.weight.numpy()
    with pytest.raises(error, match=message):
        layer.set_dict(state)
    assert np.array_equal(layer.weight.numpy(), before)


def test_set_dict_takes_tensors_of_all_kinds():
    layer = Linear(2, 2)
    tensor = fluid.create_lod_tensor(np.full((2, 2), 9, "float32"), [[2]], fluid.CPUPlace())
    layer.set_dict({"weight": tensor, "bias": fluid.dygraph.to_variable(np.ones(2, "float32"))})
    assert layer.weight.numpy().tolist() == [[9, 9], [9, 9]]


def test_set_dict_warns_of_unused_names():
    layer = Linear(2, 2)
    with pytest.warns(UserWarning, match="no parameter or buffer of that name: nope") as caught:
        layer.set_dict({**filled(), "nope": np.ones(1)})
    assert caught[0].filename == __file__ and layer.bias.numpy().tolist() == [2, 2]


def test_set_dict_without_sublayers():
    class Both(fluid.dygraph.Layer):
        def __init__(self):
            super().__init__()
            self.w, self.inner = self.create_parameter([1]), Linear(1, 1)

    layer = Both()
    before = layer.inner.weight.numpy()
    layer.set_dict({"w": np.array([3], "float32")}, include_sublayers=False)
    assert layer.w.numpy() == 3 and layer.inner.weight.numpy() == before


def test_set_state_dict_keeps_what_does_not_fit():
    """As Paddle 2.0: a head of another size, for instance, keeps its initial values."""
    layer = Linear(2, 2)
    bias = layer.bias.numpy()
    state = {"weight": np.ones((2, 2), "float32"), "bias": np.ones(3, "float32"), "more": np.ones(1)}
    with pytest.warns(UserWarning, match="'bias' keeps its value: .*need tensor with shape") as caught:
        assert layer.set_state_dict(state) == ([], ["more"])
    assert caught[0].filename == __file__
    assert layer.weight.numpy().all() and np.array_equal(layer.bias.numpy(), bias)
    with pytest.warns(UserWarning, match="'bias' is not in the state dict"):
        assert layer.set_state_dict({"weight": state["weight"]}) == (["bias"], [])


def test_batch_norm_statistics_are_in_the_state():
    source, target = Sequential(BatchNorm(2)), Sequential(BatchNorm(2))
    source[0]._mean.set_value(np.array([3, 4], "float32"))
    target.set_dict(source.state_dict())
    assert target[0]._mean.numpy().tolist() == [3, 4]
