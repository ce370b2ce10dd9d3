"""Eager tensors: elements, names, Python operators, sharing and copying of memory."""

import copy
import pickle

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph, eager, layers
from fluidlite.base.errors import EnforceNotMet
from fluidlite.eager import Parameter, Tensor, to_variable

from ..refusals import refuses


def tensor(values, dtype="float32", leaf=True):
    made = to_variable(np.array(values, dtype))
    made.stop_gradient = not leaf
    return made


def test_to_variable_copies_and_refuses():
    source = np.ones(3, "float32")
    made = to_variable(source)
    source[0] = 5
    assert made.numpy().tolist() == [1, 1, 1] and made.stop_gradient
    assert to_variable(made) is made
    assert to_variable(np.ones((2, 3), "float64")[:, ::2]).array.flags.c_contiguous
    for wrong in (5, [1, 2], None):
        with pytest.raises(TypeError, match="expected type is 'ndarray'"):
            to_variable(wrong)
    refuses(lambda: to_variable(np.array(["a"])), TypeError, "unknown data type")


def test_is_a_variable_for_isinstance():
    made = tensor([1.0])
    assert isinstance(made, fluid.Variable) and isinstance(made, fluid.framework.Variable)
    assert not isinstance(made, fluid.framework.Parameter)
    parameter = Parameter(np.ones(2, "float32"), "w")
    assert isinstance(parameter, fluid.framework.Parameter) and isinstance(parameter, fluid.Variable)
    assert not isinstance(np.ones(2), fluid.Variable)


def test_names_count_the_tensors():
    before = eager.serial()
    eager.set_serial(0)
    try:
        a = tensor([1.0, 2.0])
        assert [a.name, (a + a).name, (a + 1).name, to_variable(np.ones(1)).name] == [
            "generated_var_0", "tmp_1", "tmp_2", "generated_var_3",
        ]  # fmt: skip
        assert to_variable(np.ones(1), name="mine").name == "mine"
    finally:
        eager.set_serial(before)


A, B = np.array([[1.5, 2.0, -3.0]], "float32"), np.array([[0.5, 4.0, 2.0]], "float32")


@pytest.mark.parametrize(
    "compute",
    [
        lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: b**2,
        lambda a, b: 2**b, lambda a, b: 1 - a, lambda a, b: 3 / b, lambda a, b: a * 2.5, lambda a, b: -a,
        lambda a, b: a > b, lambda a, b: a <= 1.5, lambda a, b: a == b, lambda a, b: a != b,
        lambda a, b: a @ b.T if isinstance(b, np.ndarray) else a @ fluid.layers.transpose(b, [1, 0]),
    ],
)  # fmt: skip
def test_operators_of_python(compute):
    got = compute(tensor(A), tensor(B))
    want = compute(A, B)
    assert isinstance(got, Tensor) and got.array.dtype == want.dtype
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


def test_operators_take_numpy_arrays_on_either_side():
    a = tensor(A)
    assert isinstance(B + a, Tensor) and isinstance(a + B, Tensor)
    np.testing.assert_allclose((B - a).numpy(), B - A)
    np.testing.assert_allclose((a * B.astype("float64")).numpy(), A * B)


def test_integers_do_not_take_fractions():
    # The names of Paddle 2.0, once loaded, have other rules outside of Fluid's dygraph mode.
    message = r"float value 1\.5 cannot convert to integer"
    with fluid.dygraph.guard(), pytest.raises(AssertionError, match=message):
        tensor([1, 2], "int64", leaf=False) * 1.5


@pytest.mark.parametrize(
    "index", [1, -1, slice(0, 2), (slice(None), 1), (slice(1, None), slice(None, 2)), (0, 2), (Ellipsis, 0)]
)
def test_indexing(index):
    values = np.arange(12, dtype="float32").reshape(3, 4)
    want = values[index]
    np.testing.assert_array_equal(tensor(values)[index].numpy().ravel(), np.ravel(want))


@pytest.mark.parametrize(
    ("index", "kept"),
    [
        ((1, slice(None, None, -1)), [1, 3, 4]),
        ((slice(None, None, -1), 1), [2, 1, 4]),
        ((0, 0, slice(None, None, -1)), [1, 1, 4]),
        ((slice(None), 1, slice(None, None, -1)), [2, 1, 4]),
        ((0, slice(None, None, -1), 2), [1, 3, 1]),
        ((-1, slice(None, None, -2)), [1, 2, 4]),
        ((slice(None, None, 2), slice(None, None, -1), 1), [1, 3, 1]),
        ((0, slice(0, 3, 2), slice(1, 3)), [1, 2, 2]),
    ],
)
def test_integers_with_strided_slices(index, kept):
    # Under Fluid's dygraph mode integers keep their dimensions there, as in 1.8.5; Paddle 2.0 has NumPy's rules.
    values = np.arange(24, dtype="float32").reshape(2, 3, 4)
    want = values[index]
    np.testing.assert_array_equal(tensor(values)[index].numpy(), want)
    with fluid.dygraph.guard():
        x = tensor(values)
        part = x[index]
        assert part.shape == kept
        np.testing.assert_array_equal(part.numpy(), want.reshape(kept))
        fluid.layers.reduce_sum(part).backward()
        np.testing.assert_array_equal(x.gradient(), np.isin(values, want))


def test_one_part_of_a_split():
    values = np.arange(6, dtype="float32").reshape(2, 3)
    for parts in (
        fluid.layers.split(tensor(values), 1, dim=1),
        fluid.layers.split(tensor(values), [3], dim=1),
    ):
        assert len(parts) == 1
        np.testing.assert_array_equal(parts[0].numpy(), values)


def test_wrong_indices():
    for wrong in (3, -4):
        with pytest.raises(IndexError, match="out of range"):
            tensor([1.0, 2.0, 3.0])[wrong]
    refuses(lambda: tensor([1.0])[0, 0], IndexError, "too many indices")
    assert [float(x) for x in tensor([1.0, 2.0])] == [1.0, 2.0]


def test_one_element_is_a_number():
    assert float(tensor([2.5])) == 2.5 and int(tensor([[3.0]])) == 3 and bool(tensor([0.0])) is False
    assert [10, 20, 30][tensor([1], "int64", leaf=False)] == 20
    for convert in (float, int, bool):
        with pytest.raises(AssertionError, match=r"one element.*\[2\]"):
            convert(tensor([1.0, 2.0]))


def test_set_value_keeps_the_memory():
    parameter = Parameter(np.zeros((2, 2), "float32"), "w")
    memory = parameter.array
    parameter.set_value(np.ones((2, 2), "float32"))
    assert parameter.array is memory and memory.sum() == 4
    with pytest.raises(AssertionError, match=r"need tensor with shape \(2, 2\)"):
        parameter.set_value(np.ones(2, "float32"))
    refuses(lambda: parameter.set_value(np.ones((2, 2))), AssertionError, "need tensor with dtype float32")


def test_numpy_and_detach_do_not_alias_parameters():
    parameter = Parameter(np.zeros(2, "float32"), "w")
    before, cut = parameter.numpy(), parameter.detach()
    reshaped = fluid.layers.reshape(parameter, [2, 1])
    parameter.set_value(np.ones(2, "float32"))
    assert before.sum() == cut.array.sum() == reshaped.array.sum() == 0
    assert cut.stop_gradient and not parameter.stop_gradient


def test_trainable_is_the_opposite_of_stop_gradient_but_in_fluids_dygraph_mode():
    parameter = Parameter(np.zeros(2, "float32"), "w", trainable=False)
    assert parameter.stop_gradient and not parameter.trainable
    parameter.trainable = True
    assert not parameter.stop_gradient
    with dygraph.guard():
        parameter = Parameter(np.zeros(2, "float32"), "w", trainable=False)
        assert not parameter.stop_gradient and not parameter.trainable, "as in Fluid, gradients are computed"
        parameter.stop_gradient = parameter.trainable = True
        assert parameter.stop_gradient and parameter.trainable


def test_copies():
    parameter = Parameter(np.ones(2, "float32"), "w", optimize_attr={"learning_rate": 0.5})
    twin = copy.deepcopy(parameter)
    parameter.set_value(np.zeros(2, "float32"))
    assert twin.numpy().tolist() == [1, 1] and twin.optimize_attr == {"learning_rate": 0.5}
    refuses(lambda: copy.deepcopy(tensor([1.0]) * 2), RuntimeError, "computed from others")
    refuses(lambda: pickle.dumps(parameter), TypeError, "not pickled")
    clone = tensor([1.0]).clone()
    clone.backward()
    assert not clone.stop_gradient


def test_shows_its_elements():
    text = str(tensor([[1.0, 2.0]]))
    assert "shape=[1, 2]" in text and "float32" in text and "1., 2." in text


def test_attributes_that_an_operator_does_not_have_are_left_out():
    plain = eager.apply("softmax", {"X": tensor(A)})
    assert (
        eager.apply("softmax", {"X": tensor(A)}, attrs={"axes": 0}).numpy().tolist() == plain.numpy().tolist()
    )


def test_errors_name_the_operator_and_what_was_given():
    refuses(lambda: tensor(A) @ tensor(B), EnforceNotMet, r"matmul.*\[1, 3\]")
    with pytest.raises(TypeError, match="operator relu works on eager tensors, got ndarray"):
        eager.apply("relu", {"X": A})
    refuses(lambda: eager.apply("relu", {"X": tensor(A), "Y": tensor(A)}), EnforceNotMet, "no input 'Y'")
    refuses(lambda: eager.apply("matmul", {"X": tensor(A)}), EnforceNotMet, "input Y is missing")
    refuses(lambda: eager.apply("reluu", {"X": tensor(A)}), NotImplementedError, "did you mean 'relu'")
    with pytest.raises(EnforceNotMet, match=r"must be in \[0, 2\).*got 7"):
        ids = tensor([[7]], "int64", leaf=False)
        eager.apply("lookup_table", {"W": tensor(np.ones((2, 3))), "Ids": ids}, ("Out",))
    refuses(lambda: eager.apply("relu", {"X": eager.empty()}), ValueError, "has no value yet")


def test_setting_levels_of_detail_warns():
    with fluid.dygraph.guard():
        shared = fluid.dygraph.to_variable(np.ones((3, 1), "float32")).value().get_tensor()
        with pytest.warns(UserWarning, match="ignore levels of detail"):
            shared.set_recursive_sequence_lengths([[1, 2]])
        with pytest.warns(UserWarning, match="ignore levels of detail"):
            shared.set_lod([[0, 3]])
        assert shared.recursive_sequence_lengths() == [[3]]


def test_text_is_that_of_the_names_in_use():
    with fluid.dygraph.guard():
        tensor = fluid.dygraph.to_variable(np.array([[1, 2]], "int64"), name="ids")
        expected = "name ids, dtype: VarType.INT64 shape: [1, 2] \tlod: {}\n\tdim: 1, 2\n"
        expected += "\tlayout: NCHW\n\tdtype: int64_t\n\tdata: [1 2]\n"
        assert str(tensor) == f"{tensor}" == tensor.to_string() == expected
    assert (
        str(tensor)
        == repr(tensor)
        == "Tensor(shape=[1, 2], dtype=int64, stop_gradient=True,\n       [[1, 2]])"
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool"])
def test_a_tensor_of_one_element_of_any_type_is_an_index(dtype):
    with fluid.dygraph.guard():
        one = fluid.dygraph.to_variable(np.array([1.7], dtype))
        pair = fluid.dygraph.to_variable(np.array([1.7, 0.2], dtype))
        assert ([10, 20, 30][one], list(range(one)), np.arange(5)[one]) == (20, [0], 1)
        refuses(lambda: [10, 20][pair], AssertionError, "one element")


@pytest.mark.parametrize(
    "shape, dtype", [([2], "float32"), ([1, 2], "float32"), ([4, 3], "float32"), ([2, 2], "int64")]
)
@pytest.mark.parametrize("made", ["parameter", "global", "declared"])
def test_results_replace_persistable_tensors_of_other_shapes_and_types(made, shape, dtype):
    """They are neither repeated nor converted; results of the same kind go into the memory that is there."""
    with dygraph.guard():
        if made == "parameter":
            target = layers.create_parameter([2, 2], "float32")
        elif made == "global":
            target = layers.create_global_var([2, 2], 1.0, "float32", persistable=True)
        else:
            target = layers.create_tensor("float32", persistable=True)
            layers.assign(dygraph.to_variable(np.ones([2, 2], np.float32)), target)
        memory = target.array
        layers.assign(dygraph.to_variable(np.full([2, 2], 3, np.float32)), target)
        assert target.array is memory and memory[1, 1] == 3
        value = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        layers.assign(dygraph.to_variable(value), target)
        assert (target.shape, target.numpy().dtype) == (shape, dtype)
        np.testing.assert_array_equal(target.numpy(), value)
