"""`Sequential`, `LayerList`, `ParameterList`."""

import numpy as np
import pytest

from fluidlite.dygraph import Layer, LayerList, Linear, ParameterList, Sequential, to_variable

from ...refusals import refuses

pytestmark = pytest.mark.usefixtures("eager")


def names(layers):
    return [layer.full_name() for layer in layers]


def test_sequential_calls_one_after_the_other():
    one, two = Linear(2, 3), Linear(3, 1)
    x = to_variable(np.ones((4, 2), "float32"))
    assert Sequential(one, two)(x).numpy().tolist() == two(one(x)).numpy().tolist()
    assert Sequential()(x) is x


def test_sequential_by_place_and_name():
    seq = Sequential(("a", Linear(2, 2)), Linear(2, 3))
    assert list(seq.state_dict()) == ["a.weight", "a.bias", "1.weight", "1.bias"]
    assert (
        seq[0] is seq["a"] is seq.a and seq[-1] is seq["1"] and len(seq) == 2 and list(seq) == [seq.a, seq[1]]
    )
    seq["b"] = Linear(3, 1)
    assert seq(to_variable(np.ones((4, 2), "float32"))).shape == [4, 1]
    seq[0] = Linear(2, 2)
    assert names(seq) == ["linear_3", "linear_1", "linear_2"] and list(seq._sub_layers) == ["a", "1", "b"]
    part = seq[:2]
    assert isinstance(part, Sequential) and names(part) == ["linear_3", "linear_1"] and part.a is seq.a
    del seq["b"]
    del seq[-1]
    assert names(seq) == ["linear_3"]


@pytest.mark.parametrize("layers", [([],), ("name", None), (3,), (("a", 3),)])
def test_sequential_takes_layers_only(layers):
    refuses(lambda: Sequential(*layers), AssertionError, "takes")


def test_what_is_not_there():
    seq, many = Sequential(Linear(1, 1)), LayerList([Linear(1, 1)])
    for holder in (seq, many):
        with pytest.raises(IndexError, match="there is no number 5; there are 1"):
            holder[5]
        with pytest.raises(KeyError, match="there is no 'x'"):
            holder["x"]
    with pytest.raises(IndexError):
        many[1] = Linear(1, 1)
    with pytest.raises(TypeError, match="sublayer '0' should be of type Layer"):
        many[0] = 3


def test_layer_list_is_a_list():
    many = LayerList([Linear(1, 1), Linear(1, 1)])
    assert len(many) == 2 and names(many) == ["linear_0", "linear_1"] and many[-1] is many[1]
    assert many.append(Linear(1, 1)) is many and many.extend([Linear(1, 1)]) is many
    many.insert(0, Linear(1, 1))
    many.insert(5, Linear(1, 1))
    assert names(many) == [f"linear_{i}" for i in (4, 0, 1, 2, 3, 5)]
    assert list(many.state_dict())[::2] == [f"{i}.weight" for i in range(6)]
    del many[0]
    del many[-2:]
    assert names(many) == ["linear_0", "linear_1", "linear_2"] and list(many._sub_layers) == ["0", "1", "2"]
    many[1] = Linear(7, 7)
    assert many[1].weight.shape == [7, 7]
    part = many[1:]
    assert isinstance(part, LayerList) and len(part) == 2 and part[0] is many[1]


@pytest.mark.parametrize("index", [-1, 3, 1.0, True])
def test_layer_list_insert_checks_the_place(index):
    many = LayerList([Linear(1, 1), Linear(1, 1)])
    refuses(lambda: many.insert(index, Linear(1, 1)), AssertionError, r"integer in range \[0, 2\]")
    assert len(many) == 2


def test_layer_list_holds_layers_and_cannot_be_called():
    refuses(lambda: LayerList([3]), AssertionError, "takes a Layer, got 'int'")
    refuses(lambda: LayerList()(1), NotImplementedError, "LayerList does not define forward")


def test_parameter_list():
    maker = Layer("maker")
    many = ParameterList([maker.create_parameter([i + 1]) for i in range(2)])
    assert len(many) == 2 and [p.name for p in many] == ["maker_0.w_0", "maker_0.w_1"]
    assert many.append(maker.create_parameter([9])) is many
    many[0] = maker.create_parameter([8])
    assert [p.shape for p in many.parameters()] == [[8], [2], [9]] and many[-1].shape == [9]
    assert [name for name, _ in many.named_parameters()] == ["0", "1", "2"] and len(many[:2]) == 2
    assert repr(many) == "ParameterList(3 parameters)"
    refuses(lambda: many.append(3), TypeError, "requires Parameter or None")
