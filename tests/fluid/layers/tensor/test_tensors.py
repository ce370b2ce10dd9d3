"""The operators and names that arithmetic, shape and index layers append: as real Paddle 1.8.5 makes them."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.executor import Scope, scope_guard
from tests.engines import run_by

pytestmark = pytest.mark.usefixtures("programs")


def _vars():
    return fluid.data("x", [None, 4, 6], "float32"), fluid.data("y", [None, 4, 6], "float32")


def _ops():
    ops = fluid.default_main_program().global_block().ops
    return [(op.type, op.inputs, op.outputs) for op in ops]


def _attrs(index=-1):
    attrs = fluid.default_main_program().global_block().ops[index].attrs
    return {name: value for name, value in attrs.items() if not name.startswith("op_")}


def _run(fetch, **feed):
    with scope_guard(Scope()):
        executor = fluid.Executor()
        executor.run(fluid.default_startup_program())
        return executor.run(feed=feed, fetch_list=fetch)


def test_elementwise_with_an_activation():
    x, _ = _vars()
    v = fluid.data("v", [4], "float32")
    out = layers.elementwise_add(x, v, axis=1, act="tanh", name="foo")
    assert out.name == "foo.tmp_1" and out.shape == (-1, 4, 6)
    assert [op[0] for op in _ops()] == ["elementwise_add", "tanh"]
    assert _attrs(0) == {"axis": 1}


def test_reshape_by_variables():
    x, _ = _vars()
    six = layers.fill_constant([1], "int32", 6)
    out = layers.reshape(x, [-1, six])
    assert out.name == "reshape2_0.tmp_1" and out.shape == (-1, -1)
    assert _ops()[-1][1] == {"X": ["x"], "ShapeTensor": ["reshape2_0.tmp_0", "fill_constant_0.tmp_0"]}
    assert _attrs() == {"shape": [-1, -1]}
    (found,) = _run([out], x=np.zeros((2, 4, 6), "float32"))
    assert found.shape == (8, 6)


def test_reshape_by_numbers_and_variables_keeps_dimensions():
    x = fluid.data("x", [2, None, 4], "float32")
    rest = layers.fill_constant([1], "int32", -1)
    assert layers.reshape(x, [0, 0, 2, rest]).shape == (2, -1, 2, -1)
    out = layers.reshape(x, [0, rest])
    assert out.shape == (2, -1)
    (made,) = fluid.Executor().run(feed={"x": np.ones((2, 3, 4), "float32")}, fetch_list=[out])
    assert made.shape == (2, 12)


def test_reshape_by_an_actual_shape():
    x, _ = _vars()
    target = layers.assign(np.array([12, 4], "int32"))
    out = layers.reshape(x, [0, 24], actual_shape=target, act="relu")
    assert out.name == "reshape2_0.tmp_2" and out.shape == (-1, 24)
    assert _run([out], x=np.zeros((2, 4, 6), "float32"))[0].shape == (12, 4)


def test_reshape_in_place():
    x, _ = _vars()
    y = layers.scale(x, 2.0)
    out = layers.reshape(y, [0, 24], inplace=True)
    assert out is y and out.shape == (-1, 24)
    assert _ops()[-1][2] == {"Out": ["scale_0.tmp_0"], "XShape": ["reshape2_0.tmp_0"]}


def test_reshape_in_place_leaves_eager_tensors():
    with fluid.dygraph.guard():
        x = fluid.dygraph.to_variable(np.arange(6, dtype="float32").reshape(2, 3))
        with pytest.warns(UserWarning, match="leaves an eager tensor as it is"):
            out = layers.reshape(x, [3, 2], inplace=True)
        assert x.shape == [2, 3] and out.shape == [3, 2]
        assert layers.roll(x, 1).shape == [2, 3]


@pytest.mark.parametrize("engine", ["interpret", "plan"])
def test_gradient_of_a_reshape_in_place(engine):
    x = fluid.data("x", [2, 3], "float32")
    x.stop_gradient = False
    out = layers.reshape(layers.scale(x, 1.0), [3, 2], inplace=True)
    (dx,) = fluid.gradients(layers.reduce_sum(layers.square(out)), x)
    data = np.arange(6, dtype="float32").reshape(2, 3)
    with run_by(engine):
        (found,) = _run([dx], x=data)
    np.testing.assert_array_equal(found, 2 * data)


@pytest.mark.parametrize(
    ("shape", "error", "words"),
    [
        ([-1, -1], ValueError, "Only one number of 'shape' in reshape can be -1"),
        ([0, 0, 0, 0], ValueError, "x has 3 dimensions"),
        ([-2, 3], ValueError, r"shape\[0\] = -2"),
        ([], ValueError, "must not be empty"),
        (6, TypeError, "must be a list, tuple or Variable"),
    ],
)
def test_reshape_to_what_cannot_be(shape, error, words):
    with pytest.raises(error, match=words.replace("x has", "but x has")):
        layers.reshape(_vars()[0], shape)


def test_names_of_shape_layers():
    x, _ = _vars()
    assert layers.transpose(x, [1, 0, 2]).name == "transpose_0.tmp_0"
    assert layers.unsqueeze(x, 1).name == "unsqueeze2_0.tmp_0"
    assert layers.squeeze(layers.unsqueeze(x, [1]), [1]).name == "squeeze_0.tmp_0"
    assert layers.flatten(x, 2).name == "flatten_0.tmp_0"
    assert layers.shape(x).name == "shape_0.tmp_0"
    assert layers.rank(x).name == "assign_0.tmp_0"
    assert [op[0] for op in _ops()] == [
        "transpose2", "unsqueeze2", "unsqueeze2", "squeeze2", "flatten2", "shape", "assign_value",
    ]  # fmt: skip


@pytest.mark.parametrize("perm", [[0], [0, 0, 1], [0, 1, 5]])
def test_transpose_needs_a_permutation(perm):
    with pytest.raises(ValueError, match="each of the 3 dimensions"):
        layers.transpose(_vars()[0], perm)


def test_split_and_concat():
    x, y = _vars()
    parts = layers.split(x, [1, -1], 1)
    assert [part.shape for part in parts] == [(-1, 1, 6), (-1, 3, 6)]
    assert _attrs() == {"axis": 1, "sections": [1, -1]}
    one = layers.fill_constant([1], "int32", 1)
    parts = layers.split(x, [one, 3], 1)
    assert [part.name for part in parts] == ["split_1.tmp_1", "split_1.tmp_2"]
    assert layers.concat([x, y], 1).shape == (-1, 8, 6)
    assert layers.concat([x, y], one).shape == (-1, -1, -1)
    with pytest.warns(UserWarning, match="single Variable"):
        assert layers.concat(x).shape == (-1, 4, 6)


def test_concat_takes_an_eager_tensor_for_its_rows():
    with fluid.dygraph.guard():
        array = np.arange(12, dtype="float32").reshape(2, 3, 2)
        x = fluid.dygraph.to_variable(array)
        np.testing.assert_array_equal(layers.concat(x, axis=1).numpy(), np.concatenate(list(array), 1))
        np.testing.assert_array_equal(layers.concat(x).numpy(), array.reshape(6, 2))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: layers.split(x, "a"), TypeError, "'num_or_sections' in split must be int, list or tuple"),
        (lambda x: layers.split(x, 1), ValueError, "more than 1"),
        (lambda x: layers.split(x, 2, 7), ValueError, "'dim' of split"),
        (lambda x: layers.split(x, 5, 1), ValueError, "4 cannot be split into 5"),
        (lambda x: layers.concat([x, 3]), TypeError, r"input\[1\]"),
        (lambda x: layers.stack(3), TypeError, "'x' in stack must be a list"),
        (lambda x: layers.unstack(x), ValueError, "needs 'num'"),
        (lambda x: layers.multiplex([x], x), ValueError, "at least 2 inputs"),
        (lambda x: layers.relu(3), TypeError, "'x' in relu must be a Variable"),
        (
            lambda x: layers.relu(layers.cast(x, "int32")),
            TypeError,
            "data type of 'x' in relu .* received int32",
        ),
        (lambda x: layers.elementwise_add(x, 2), TypeError, "'y' in elementwise_add must be a Variable"),
        (lambda x: layers.less_than(x, 1), TypeError, "'y' in less_than"),
        (lambda x: layers.logical_not(x), TypeError, "data type of 'x' in logical_not must be"),
        (lambda x: layers.slice(x, 0, 0, 1), ValueError, "'axes' of slice"),
        (lambda x: layers.slice(x, [0, 1], [0], [1, 1]), ValueError, "'starts' of slice must have a number"),
        (lambda x: layers.expand(x, [1, 0, 1]), ValueError, "positive numbers"),
        (lambda x: layers.expand(x, 2), TypeError, "'expand_times' in expand"),
        (lambda x: layers.prelu(x, "some"), ValueError, "'mode' of prelu"),
        (lambda x: layers.prelu(layers.reshape(x, [-1]), "channel"), AssertionError, "has no channels"),
        (lambda x: layers.maxout(x, 2, axis=2), ValueError, "'axis' of maxout"),
        (lambda x: layers.matmul(x, layers.cast(x, "int64")), TypeError, "'y' in matmul"),
        (lambda x: layers.reduce_sum(x, dim="a"), TypeError, "'dim' in reduce_sum"),
        (lambda x: layers.mean(layers.cast(x, "bool")), TypeError, "'x' in mean"),
        (lambda x: layers.sums([]), ValueError, "at least one"),
        (lambda x: layers.flatten(x, 5), ValueError, "'axis' of flatten"),
        (lambda x: layers.squeeze(x, 1), TypeError, "'axes' in squeeze"),
        (lambda x: layers.crop(x, 3), ValueError, "'shape' of crop"),
        (lambda x: layers.pad2d(x, mode="wrap"), ValueError, "'mode' of pad2d"),
        (lambda x: layers.gather(x, 3), TypeError, "'index' in gather"),
    ],
)
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call(_vars()[0])


def test_reductions():
    x, _ = _vars()
    assert layers.reduce_sum(x).shape == (1,)
    assert _attrs() == {"dim": [0], "keep_dim": False, "reduce_all": True}
    assert layers.reduce_max(x, dim=[1, 2], name="mm").name == "mm.tmp_0"
    assert _attrs() == {"dim": [1, 2], "keep_dim": False, "reduce_all": False}
    assert layers.reduce_mean(x, dim=-1, keep_dim=True).shape == (-1, 4, 1)
    assert layers.logsumexp(x, dim=[1], keepdim=True).name == "log_0.tmp_0"
    assert [op[0] for op in _ops()][-3:] == ["exp", "reduce_sum", "log"]
    assert layers.logsumexp(x, name="own").name == "own.tmp_0"


def test_numbers_divided_by_tensors_of_unknown_sizes():
    x = fluid.data("x", [None, None, None], "float32")
    values = np.arange(1, 13, dtype="float32").reshape(2, 3, 2)
    np.testing.assert_allclose(_run([2.0 / x], x=values)[0], 2.0 / values)
    np.testing.assert_allclose(_run([2.0**x], x=values)[0], 2.0**values, rtol=1e-6)


def test_cross_of_unknown_sizes():
    x = fluid.data("x", [None, None], "float32")
    permuted = np.eye(3, dtype="float32")[[1, 2, 0]]
    (made,) = _run([layers.cross(x, layers.reverse(x, 1))], x=permuted)
    np.testing.assert_array_equal(made, np.cross(permuted, permuted[:, ::-1], axis=0))


def test_slices():
    x, _ = _vars()
    assert layers.slice(x, [1, 2], [0, -3], [2, 100]).shape == (-1, 2, 3)
    three = layers.fill_constant([1], "int32", 3)
    assert layers.slice(x, [1, 2], [0, three], [2, 100]).shape == (-1, 2, -1)
    assert _attrs()["infer_flags"] == [1, -1] and _attrs()["starts"] == [0, -1]
    both = layers.fill_constant([2], "int32", 1)
    out = layers.slice(x, [1, 2], both, [2, 100])
    assert out.shape == (-1, -1, -1) and _attrs()["infer_flags"] == [-1, -1]
    (found,) = _run([out], x=np.arange(48, dtype="float32").reshape(2, 4, 6))
    np.testing.assert_array_equal(found, np.arange(48).reshape(2, 4, 6)[:, 1:2, 1:])


def test_crop_tensor_by_variables():
    w = fluid.data("w", [2, 4, 6], "float32")
    three, one = layers.fill_constant([1], "int32", 3), layers.fill_constant([1], "int32", 1)
    out = layers.crop_tensor(w, [2, three, 2], [0, one, 1])
    assert out.name == "crop_tensor_0.tmp_0" and out.shape == (2, -1, 2)
    assert _attrs() == {"offsets": [0, -1, 1], "shape": [2, 0, 2]}
    (found,) = _run([out], w=np.arange(48, dtype="float32").reshape(2, 4, 6))
    np.testing.assert_array_equal(found, np.arange(48).reshape(2, 4, 6)[:, 1:4, 1:3])


def test_comparisons_have_no_gradient():
    x, y = _vars()
    out = layers.less_than(x, y)
    assert out.name == "less_than_0.tmp_0" and out.stop_gradient and str(out.dtype) == "VarType.BOOL"
    kept = layers.equal(x, y, cond=out)
    assert kept is out


def test_swish_says_that_beta_has_no_effect():
    x, _ = _vars()
    with pytest.warns(UserWarning, match="beta 1 as Fluid 1.8 does"):
        out = layers.swish(x, beta=2.0)
    (found,) = _run([out], x=np.ones((1, 4, 6), "float32"))
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-1)), rtol=1e-6)


def test_prelu_and_bilinear_parameters():
    x = fluid.data("x", [3, 4, 5, 2], "float32")
    layers.prelu(x, "channel")
    a, b = fluid.data("a", [3, 4], "float32"), fluid.data("b", [3, 5], "float32")
    out = layers.bilinear_tensor_product(a, b, 7, act="relu")
    assert out.shape == (3, 7)
    shapes = {p.name: p.shape for p in fluid.default_main_program().all_parameters()}
    assert shapes == {
        "prelu_0.w_0": (1, 4, 1, 1),
        "bilinear_tensor_product_0.w_0": (7, 4, 5),
        "bilinear_tensor_product_0.b_0": (1, 7),
    }


def test_scale_by_a_variable():
    x, _ = _vars()
    factor = layers.fill_constant([1], "float32", 3.0)
    out = layers.scale(x, factor, bias=2.0, bias_after_scale=False, act="relu")
    assert out.name == "scale_0.tmp_1" and _attrs(-2) == {"bias": 2.0, "bias_after_scale": False}
    (found,) = _run([out], x=np.full((1, 4, 6), -1, "float32"))
    np.testing.assert_array_equal(found, np.full((1, 4, 6), 3, "float32"))
    with fluid.dygraph.guard():  # Fluid forgets the activation there
        eager = layers.scale(fluid.dygraph.to_variable(np.array([-1, 2], "float32")), 2.0, act="relu")
    assert eager.numpy().tolist() == [-2, 4]


def test_scatter_nd_adds_to_zeros():
    index, updates = fluid.data("index", [3, 1], "int64"), fluid.data("updates", [3, 2], "float32")
    out = layers.scatter_nd(index, updates, [4, 2])
    assert [op[0] for op in _ops()] == ["fill_constant", "scatter_nd_add"]
    found = _run([out], index=np.array([[1], [1], [0]]), updates=np.arange(6, dtype="float32").reshape(3, 2))[
        0
    ]
    np.testing.assert_array_equal(found, [[4, 5], [2, 4], [0, 0], [0, 0]])


def test_second_derivatives_in_a_program():
    x = fluid.data("x", [4], "float32")
    x.stop_gradient = False
    (first,) = fluid.gradients(layers.reduce_sum(layers.tanh(x) * x), x)
    (second,) = fluid.gradients(layers.reduce_sum(layers.square(first)), x)
    data = np.linspace(-1, 1, 4)
    (found,) = _run([second], x=data.astype("float32"))

    def slope(v):
        return np.tanh(v) + v * (1 - np.tanh(v) ** 2)

    expected = (slope(data + 1e-6) ** 2 - slope(data - 1e-6) ** 2) / 2e-6
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_overflow_is_no_warning(dtype):
    x = fluid.data("x", [2], dtype)
    out = [layers.exp(x), layers.log(x), layers.elementwise_pow(x, x)]
    found = _run(out, x=np.array([0, 1000], dtype))
    np.testing.assert_array_equal(found[0], [1, np.inf])
    assert found[1][0] == -np.inf and found[2][1] == np.inf


@pytest.mark.parametrize("eager", [False, True])
def test_lists_of_one_variable(eager):
    # As decoders of 2020 give the rows to `gather`: these layers never asked what they were given.
    data, rows = np.arange(12, dtype="float32").reshape(4, 3), np.array([2, 0], "int64")

    def made(x, at, value):
        points = layers.unsqueeze(at, [1])
        return [
            layers.gather(x, [at]),
            layers.gather([x], at),
            layers.gather_nd(x, [points]),
            layers.scatter([x], [at], [value]),
            layers.scatter_nd_add(x, [points], value),
            layers.pool2d([layers.reshape(x, [1, 1, 4, 3])], 2),
            fluid.one_hot([at], 4),
            layers.size([x]),
        ]

    ones = np.ones((2, 3), "float32")
    if eager:
        with fluid.dygraph.guard():
            got = [part.numpy() for part in made(*map(fluid.dygraph.to_variable, (data, rows, ones)))]
    else:
        x = fluid.data("x", [4, 3], "float32")
        got = _run(made(x, layers.assign(rows), layers.assign(ones)), x=data)
    replaced, added = data.copy(), data.copy()
    replaced[rows] = 1
    added[rows] += 1
    pooled = np.lib.stride_tricks.sliding_window_view(data, (2, 2)).max((2, 3))
    wanted = [*[data[rows]] * 3, replaced, added, pooled[None, None], np.eye(4)[rows], [12]]
    for value, want in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(value, want)
