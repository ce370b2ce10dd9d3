"""Operators whose results have sizes that only the data know: native code against the reference kernels and NumPy."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite._ext import kernels
from fluidlite._ext.engine import KernelFailure
from fluidlite.eager import Tensor, apply
from fluidlite.ops import registry
from fluidlite.ops.detection import nms

RNG = np.random.default_rng(5)
WHERE, UNIQUE = registry.find("where_index"), registry.find("unique_with_counts")


@pytest.mark.parametrize("share", [0, 0.02, 0.5, 1])
@pytest.mark.parametrize(
    "shape", [(0,), (1,), (7,), (8,), (1000,), (3, 0), (0, 3), (5, 9), (40, 25), (3, 1, 17), (2, 3, 4, 8)]
)
def test_places_of_true_elements(shape, share):
    true = RNG.random(shape) < share
    found = WHERE.dispatch.numpy(np, true)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, np.argwhere(true))


@pytest.mark.parametrize("kind", ["int32", "int64", "float32", "float64", "uint8"])
def test_places_of_what_is_not_zero(kind):
    numbers = RNG.integers(0, 2, (6, 11)).astype(kind)
    np.testing.assert_array_equal(WHERE.dispatch.numpy(np, numbers), np.argwhere(numbers))
    np.testing.assert_array_equal(WHERE.dispatch.numpy(np, numbers.T), np.argwhere(numbers.T))


@pytest.mark.parametrize("kind", ["int32", "int64", "float32", "float64", "int8"])
@pytest.mark.parametrize(("n", "most"), [(0, 1), (1, 1), (9, 3), (5000, 4), (5000, 100000)])
def test_different_elements_in_the_order_of_their_first_places(n, most, kind):
    if kind == "int8":
        most = min(most, 100)
    x = RNG.integers(-most, most + 1, n).astype(kind)
    values, index, counts = UNIQUE.dispatch.numpy(np, x, dtype=3)
    seen = list(dict.fromkeys(x.tolist()))
    assert values.dtype == x.dtype and index.dtype == counts.dtype == np.int64
    assert values.tolist() == seen
    np.testing.assert_array_equal(values[index], x)
    np.testing.assert_array_equal(counts, np.bincount(index, minlength=len(seen)))


def test_zeros_of_both_signs_are_equal_and_no_nan_equals_another():
    x = np.array([-0.0, 1, 0.0, np.nan, np.nan, -0.0], "float32")
    for kernel in (UNIQUE.kernel, UNIQUE.dispatch.numpy):
        values, index, counts = kernel(np, x, dtype=2)
        np.testing.assert_array_equal(values, [0, 1, np.nan, np.nan])
        assert np.signbit(values[0])
        assert index.tolist() == [0, 1, 0, 2, 3, 0] and counts.tolist() == [3, 1, 1, 1]
    values, *_ = UNIQUE.dispatch.numpy(np, x[:3], dtype=2)
    assert np.signbit(values[0]) and values.tolist() == [0, 1]


def test_a_program_runs_the_native_code(programs):
    x = fluid.data("x", [None, None], "float32")
    places = fluid.layers.where(x > fluid.layers.fill_constant([1], "float32", 0.5))
    chosen = fluid.layers.gather_nd(x, places)
    exe = fluid.Executor(fluid.CPUPlace())
    for shape in ((3, 5), (3, 5), (40, 30), (2, 2)):
        given = RNG.random(shape).astype("float32")
        got = exe.run(fluid.default_main_program(), {"x": given}, [places, chosen])
        np.testing.assert_array_equal(got[0], np.argwhere(given > 0.5))
        np.testing.assert_array_equal(got[1], given[given > 0.5])


def test_eager_gradients_where_the_data_decide():
    for n in (3, 3, 8, 20, 5):
        x = Tensor(RNG.random((n, 4)).astype("float32"), stop_gradient=False)
        mask = x.numpy() > 0.5
        chosen = apply("masked_select", {"X": x, "Mask": Tensor(mask)}, ["Y"])
        assert chosen.shape == [mask.sum()]
        apply("reduce_sum", {"X": chosen * chosen}, attrs={"reduce_all": True}).backward()
        np.testing.assert_allclose(x.gradient(), np.where(mask, 2 * x.numpy(), 0), rtol=1e-6)


def test_a_wrong_number_of_places_is_refused():
    true, shape = np.array([1, 0, 1], "u1"), np.array([3])
    for room in (1, 3):
        out = np.full((4, 1), 77)
        if room == 3:
            with pytest.raises(KernelFailure):
                kernels.call("where_index", [true, shape, out], [3, 1, room])
        else:
            kernels.call("where_index", [true, shape, out], [3, 1, room])
            assert out[:, 0].tolist() == [0, 77, 77, 77]
    with pytest.raises(KernelFailure):
        kernels.call("where_index", [true, np.array([4]), np.zeros((2, 1), "int64")], [3, 1, 2])


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("normalized", [True, False])
def test_boxes_left_are_those_of_the_matrix_of_overlaps(normalized, kind):
    # Rounded corners make ties with the threshold; plain ones tell products that are rounded from those that are not.
    for number in range(200):
        n, eta, most = number % 23, (1.0, 0.9, 0.5)[number % 3], (-1, 4)[number % 2]
        threshold = (0.3, 0.5, 0.7, 0.9, 0.25, 1 / 3, 0.0)[number % 7]
        boxes = RNG.random((n, 4))
        boxes[:, 2:] += boxes[:, :2] if number % 4 else 0
        boxes = (np.round(boxes * 8) if number % 5 == 0 else boxes).astype(kind)
        found = nms.suppressed(boxes, threshold, eta, normalized, most)
        want = nms._by_pairs(boxes, threshold, eta, normalized, most)
        assert found.tolist() == want.tolist(), (number, boxes)


def test_boxes_that_are_not_finite_go_by_the_matrix():
    boxes = np.array([[0, 0, 1, 1], [0, 0, np.nan, 1], [0, 0, np.inf, 1], [0, 0, 1, 1]], "float32")
    with np.errstate(invalid="ignore"):
        want = nms._by_pairs(boxes, 0.5, 1.0, True, -1)
        assert nms.suppressed(boxes, 0.5, 1.0, True).tolist() == want.tolist()
