"""Feeds that real Paddle 1.8.5 accepts or refuses; data of another element type, or that a thread writes meanwhile."""

import threading

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.ops.registry import find

layers = fluid.layers
PLACE = fluid.CPUPlace()
pytestmark = pytest.mark.usefixtures("engine")


def run(declare, build, value, steps=2):
    """The value of `build(x)` for x fed with `value`, in the last of several steps, which a plan runs."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = declare()
        y = build(x)
    exe = fluid.Executor(PLACE)
    exe.run(startup)
    for _ in range(steps):
        (got,) = exe.run(main, feed={"x": value}, fetch_list=[y], return_numpy=False)
    return got


def old(*shape, dtype="float32", **kwargs):
    return lambda: layers.data("x", list(shape), dtype=dtype, stop_gradient=False, **kwargs)


def new(*shape, dtype="float32", **kwargs):
    return lambda: fluid.data("x", list(shape), dtype, **kwargs)


def twice(x):
    return layers.scale(x, 2.0)


@pytest.mark.parametrize(
    ("declared", "fed", "accepted"),
    [
        ((3, 1), (3,), True), ((3, 1), (1,), False), ((None, 1), (6,), True), ((None, 2, 2), (2, 2), True),
        ((None, 10, 10), (10, 10), True), ((None, 2, 2), (5, 4), False), ((None, 3, 4), (3, 4), False),
        ((None, 3, 4), (9, 3), True), ((4, 3), (4,), True), ((4, 3), (5,), False),
        ((None, 3), (2, 3, 1), False), ((None,), (2, 3), False),
    ],
)  # fmt: skip
def test_data_takes_fewer_dimensions_but_no_other_sizes(declared, fed, accepted):
    value = np.ones(fed, "float32")
    if accepted:
        assert run(new(*declared), twice, value).shape() == list(fed)
    else:
        with pytest.raises(ValueError, match=r"'x' should have dimensions = .*received fed shape"):
            run(new(*declared), twice, value)


@pytest.mark.parametrize("fed", [(3,), (2, 4), (2, 3, 1), (5, 4), (2, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
def test_layers_data_takes_any_shape_and_type(fed, dtype):
    got = run(old(3), twice, np.ones(fed, dtype))
    assert got.shape() == list(fed)
    assert np.array(got).dtype == dtype
    assert (np.array(got) == 2).all()


def test_sequences_may_have_any_number_of_rows():
    tensor = fluid.create_lod_tensor(np.ones((4, 3), "float32"), [[1, 3]], PLACE)
    got = run(new(2, 3, lod_level=1), twice, tensor)
    assert got.recursive_sequence_lengths() == [[1, 3]]
    tensor = fluid.create_lod_tensor(np.ones((4, 2), "float32"), [[1, 3]], PLACE)
    with pytest.raises(ValueError, match=r"\[4, 2\]"):
        run(new(2, 3, lod_level=1), twice, tensor)


@pytest.mark.parametrize("value", [3, 3.0, True, np.float64(3), np.int64(3), "3"])
@pytest.mark.parametrize("declare", [old(1), new(None, 1)])
def test_a_number_gets_the_type_of_the_variable(value, declare):
    got = np.array(run(declare, twice, value))
    assert (got.shape, got.dtype, got[0]) == ((1,), "float32", 2 * float(value))


@pytest.mark.parametrize(
    "value", [((1.0, 2.0),), range(2), np.array([[1.0, 2.0]], ">f4"), np.ma.masked_array([[1.0, 2.0]])]
)
def test_arrays_in_other_forms(value):
    got = np.array(run(old(2), twice, value))
    assert got.tolist() == (2 * np.array(value)).tolist()


def test_arrays_of_tensors_are_stacked():
    tensors = fluid.LoDTensorArray()
    for n in (1.0, 2.0):
        tensor = fluid.LoDTensor()
        tensor.set(np.full(2, n, "float32"), PLACE)
        tensors.append(tensor)
    assert np.array(run(old(2), twice, tensors)).tolist() == [[2.0, 2.0], [4.0, 4.0]]


@pytest.mark.parametrize(
    "value",
    [None, {"a": 1}, {1}, np.array([None]), np.ones(2, "complex64"), np.ones(2, "uint32"), fluid.LoDTensor()],
)
def test_what_no_tensor_can_hold(value):
    with pytest.raises(fluid.core.EnforceNotMet, match="'x'") as caught:
        run(old(2), twice, value)
    assert isinstance(caught.value, (ValueError, TypeError))
    assert type(caught.value).__name__ == "EnforceNotMet"


# Element types: what is computed, or refused, when others are fed than were declared.


def gathered(x):
    return layers.gather(x, layers.fill_constant([2], "int64", 1))


@pytest.mark.parametrize(
    ("build", "takes"),
    [
        (layers.sqrt, {"float64"}),
        (layers.square, {"float64", "int64", "int32"}),
        (layers.relu, {"float64"}),
        (layers.softmax, {"float64"}),
        (lambda x: layers.reduce_sum(x, 1), {"float64", "int64", "int32"}),
        (lambda x: layers.transpose(x, [1, 0]), {"float64", "int64", "int32"}),
        (lambda x: layers.reshape(x, [3, 4]), {"float64", "int64", "int32", "uint8"}),
        (lambda x: x[1], {"float64", "int64", "int32"}),
        (lambda x: x + 2.0, {"float64", "int64", "int32", "uint8"}),
        (gathered, {"float64", "int64", "int32", "uint8"}),
        (lambda x: layers.fc(x, 2), set()),
        (layers.batch_norm, set()),
        (lambda x: x / layers.ones([4, 3], "float32"), set()),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "int64", "int32", "uint8", "bool", "float16"])
def test_another_type_is_computed_in_or_refused(build, takes, dtype):
    value = (np.arange(12).reshape(4, 3) + 1).astype(dtype)
    if dtype not in takes:
        with pytest.raises(fluid.core.EnforceNotMet, match="does not have a kernel|of one data type"):
            run(old(3), build, value)
        return
    got = np.array(run(old(3), build, value))
    like = np.array(run(old(3), build, value.astype("float32")))
    assert got.dtype == dtype
    np.testing.assert_allclose(got, like, rtol=1e-6)


def test_gradients_have_the_type_of_what_they_are_made_from():
    def gradient(x):
        return fluid.gradients(layers.reduce_sum(gathered(x)), [x])[0]

    for dtype in ("float64", "int64"):
        got = np.array(run(old(3), gradient, np.ones((4, 3), dtype)))
        assert (got.dtype, got.sum()) == ("float32", 3)


def test_several_types_in_one_operator():
    x, y = layers.data("x", [3]), layers.data("y", [3])
    z = layers.elementwise_add(x, y)
    exe = fluid.Executor(PLACE)
    a, b = np.ones((2, 3), "float32"), np.ones((2, 3))
    with pytest.raises(fluid.core.EnforceNotMet, match="x is float32 and y is float64"):
        exe.run(feed={"x": a, "y": b}, fetch_list=[z])
    assert exe.run(feed={"x": b, "y": b}, fetch_list=[z])[0].dtype == "float64"


def test_labels_of_fewer_bits_give_the_same_loss():
    x, label = layers.data("x", [3]), layers.data("label", [1], dtype="int64")
    loss = layers.cross_entropy(x, label)
    exe = fluid.Executor(PLACE)
    value = np.full((2, 3), 0.25, "float32")
    for dtype in ("int64", "int32"):
        feed = {"x": value, "label": np.array([[1], [2]], dtype)}
        for _ in range(2):
            (got,) = exe.run(feed=feed, fetch_list=[loss])
            np.testing.assert_allclose(got, np.log(4.0), rtol=1e-6)
    with pytest.raises(fluid.core.EnforceNotMet, match="kernel for Label of float32, only for int64"):
        exe.run(feed={"x": value, "label": np.ones((2, 1), "float32")}, fetch_list=[loss])


@pytest.mark.parametrize(
    ("layer", "want"),
    [
        (lambda x, i: layers.softmax_with_cross_entropy(x, i), [[np.log(3)]] * 2),
        (lambda x, i: layers.cross_entropy(x, i), [[np.log(4)]] * 2),
        (lambda x, i: layers.gather(x, i), [[0.25] * 3] * 2),
        (lambda x, i: layers.gather_nd(x, i), [[0.25] * 3] * 2),
        (lambda x, i: layers.slice(x, [0], [layers.reshape(i, [2])[0]], [9]), [[0.25] * 3]),
        (lambda x, i: fluid.one_hot(i, 3), [[[0, 1, 0]], [[0, 1, 0]]]),
        (lambda x, i: layers.bpr_loss(x, i), [[np.log(2)]] * 2),
        (lambda x, i: layers.accuracy(x, i), [0]),
    ],
)
def test_integers_are_what_is_fed_whatever_was_declared(layer, want):
    """Scripts forget `dtype="int64"` where they declare labels and indices."""
    out = layer(layers.data("x", [3]), layers.data("i", [1]))
    exe, values = fluid.Executor(PLACE), np.full((2, 3), 0.25, "float32")
    got = exe.run(feed={"x": values, "i": np.ones((2, 1), "int64")}, fetch_list=[out])[0]
    np.testing.assert_allclose(got, np.array(want, "float32"), rtol=1e-6)


@pytest.mark.parametrize("engine", ["plan"], indirect=True)
def test_labels_that_are_no_integers_are_refused_when_they_are_fed(engine):
    x, label = layers.data("x", [3]), layers.data("label", [1])
    for out in (layers.cross_entropy(x, label), layers.gather(x, label), fluid.one_hot(label, 3)):
        with pytest.raises(fluid.core.EnforceNotMet, match="must be int"):
            feed = {"x": np.full((2, 3), 0.25, "float32"), "label": np.ones((2, 1), "float32")}
            fluid.Executor(PLACE).run(feed=feed, fetch_list=[out], use_prune=True)


def test_sequences_that_do_not_end_where_the_rows_do_are_refused():
    tensor = fluid.create_lod_tensor(np.ones((5, 3), "float32"), [[2, 3]], PLACE)
    tensor.set(np.ones((4, 3), "float32"), PLACE)
    with pytest.raises(fluid.core.EnforceNotMet, match="'x' has 4 rows, but its sequences end at 5"):
        run(old(3), layers.relu, tensor)
    tensor.set_recursive_sequence_lengths([[2, 2]])
    assert run(old(3), layers.relu, tensor).lod() == [[0, 2, 4]]


def test_what_is_written_before_it_is_read_need_not_be_fed():
    """As in beam searches, whose loops begin with data that operators in front of them compute."""
    main = fluid.default_main_program()
    x, start_at = fluid.data("x", [None, 3]), fluid.data("start_at", [None, 0])
    layers.assign(x * 2.0, start_at)
    step, steps = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 2)
    _, made = layers.while_loop(
        lambda i, s: layers.less_than(i, steps),
        lambda i, s: [layers.increment(i, 1, in_place=False), s + 1.0],
        [step, start_at],
    )
    before = fluid.data("before", [None, 3]) * 2.0
    layers.assign(x, main.global_block().var("before"))
    exe, value = fluid.Executor(PLACE), np.ones((2, 3), "float32")
    for _ in range(2):
        (got,) = exe.run(main, feed={"x": value, "before": value}, fetch_list=[made])
        np.testing.assert_array_equal(got, value * 4)
    with pytest.raises(fluid.core.EnforceNotMet, match="'before'.* was not fed"):
        exe.run(main, feed={"x": value}, fetch_list=[before])


def test_what_is_fed_as_a_persistable_variable_lasts_and_is_trained(tmp_path):
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    x = fluid.data("x", [None, 2], lod_level=1)
    weight = layers.create_parameter([2, 1], "float32", name="w")
    loss = layers.mean(layers.mul(x, weight))
    fluid.optimizer.SGD(0.5).minimize(loss)
    x.persistable = True
    exe = fluid.Executor(PLACE)
    exe.run(startup)
    trained = np.zeros([2, 1], "float32")
    for step in range(4):
        rows = np.full([3 + step, 2], 1 + step, "float32")
        feed = {"x": fluid.create_lod_tensor(rows, [[2, 1 + step]], PLACE)}
        if step != 2:
            feed["w"] = trained = np.full([2, 1], 10 * step, "float32")
        (got,) = exe.run(main, feed=feed, fetch_list=[loss])
        assert got.item() == (rows @ trained).mean()
        trained = trained - 0.5 * np.full([2, 1], 1 + step, "float32")
        np.testing.assert_array_equal(fluid.global_scope().find_var("w").get_tensor(), trained)
        rows[:] = -1
        kept = fluid.global_scope().find_var("x").get_tensor()
        np.testing.assert_array_equal(kept, np.full([3 + step, 2], 1 + step))
        assert kept.recursive_sequence_lengths() == [[2, 1 + step]]
    fluid.io.save_persistables(exe, str(tmp_path), main)
    assert {"w", "x"} <= {file.name for file in tmp_path.iterdir()}


def test_a_persistable_variable_of_a_reader_is_saved(tmp_path):
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    x = fluid.data("x", [None, 2])
    loader = fluid.io.DataLoader.from_generator(feed_list=[x], capacity=2, iterable=False)
    layers.fc(x, 1)
    x.persistable = True
    exe = fluid.Executor(PLACE)
    exe.run(startup)
    loader.set_batch_generator(lambda: ([np.full([2, 2], value, "float32")] for value in range(3)))
    loader.start()
    with pytest.raises(fluid.core.EOFException):
        while True:
            exe.run(main)
    loader.reset()
    fluid.io.save_persistables(exe, str(tmp_path), main)
    np.testing.assert_array_equal(fluid.global_scope().find_var("x").get_tensor(), np.full([2, 2], 2))
    assert (tmp_path / "x").is_file()


TREE = {
    "Travel": np.array([[0, 0], [1, 3], [2, 4]], "int32"),
    "Layer": np.array([[1], [2], [3], [4]], "int32"),
}
TWICE = np.array([2, 1], "int32")
SAMPLED = {"neg_samples_num_list": [0, 0], "layer_offset_lod": [0, 2, 4], "output_positive": True, "dtype": 3}


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "out", "want"),
    [
        ("expand", {"X": np.ones((1, 2), "float32"), "ExpandTimes": TWICE}, {}, "Out", [[1, 1]] * 2),
        ("flatten", {"X": np.array([[[3], [4]]])}, {"axis": 1}, "Out", [[3, 4]]),
        ("cvm", {"X": np.array([[1, 2, 7]], "float32"), "CVM": np.ones((1, 2))}, {"use_cvm": False}, "Y",
         [[7]]),
        ("equal_reduce", {"X": np.arange(3), "Y": np.arange(3)}, {"axis": 0}, "Out", True),
        ("crop", {"X": np.arange(4, dtype="float32"), "Y": np.ones(2, bool)}, {"offsets": [1]}, "Out",
         [1, 2]),
        ("tdm_sampler", {"X": np.array([[1], [2]], "int32"), **TREE}, SAMPLED, "Out", [[1, 3], [2, 4]]),
        ("tdm_sampler", {"X": np.array([[1], [2]]), **TREE}, SAMPLED, "Out", [[1, 3], [2, 4]]),
    ],
)  # fmt: skip
def test_operators_compute_on_what_is_fed(op, inputs, attrs, out, want):
    """Everything is declared float32."""
    main = fluid.Program()
    block = main.global_block()
    given = {
        slot: [block.create_var(name=slot, shape=value.shape, dtype="float32", is_data=True)]
        for slot, value in inputs.items()
    }
    names = [slot.name for slot in find(op).output_slots]
    block.append_op(op, given, {name: [block.create_var(name=name + "_out")] for name in names}, attrs)
    for _ in range(2):
        (got,) = fluid.Executor(PLACE).run(main, feed=inputs, fetch_list=[out + "_out"])
        np.testing.assert_array_equal(np.reshape(got, np.shape(want)), want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64", "bool"])
@pytest.mark.parametrize("sparse", [False, True])
def test_sgd_takes_a_learning_rate_of_any_type(dtype, sparse):
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    ids = fluid.data("ids", [2], "int64")
    rows = fluid.embedding(
        ids, [3, 1], sparse, param_attr=fluid.ParamAttr("w", fluid.initializer.Constant(1.0))
    )
    optimizer = fluid.optimizer.SGD(0.5)
    optimizer.minimize(layers.reduce_sum(rows))
    name = optimizer._global_learning_rate().name
    exe, rate = fluid.Executor(PLACE), 1 if dtype == "bool" else 2
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        scope = fluid.global_scope()
        holder = scope.find_var(name).get_tensor()
        holder.set(np.array([rate]).astype(dtype), PLACE)
        for _ in range(3):
            exe.run(main, feed={"ids": np.array([0, 2])})
        assert np.array(scope.find_var("w").get_tensor()).tolist() == [[1 - 3 * rate], [1], [1 - 3 * rate]]
        assert np.array(holder).dtype == dtype


def test_other_optimizers_take_a_learning_rate_of_the_type_of_the_parameter():
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    optimizer = fluid.optimizer.Momentum(0.5, 0.9)
    optimizer.minimize(layers.mean(layers.fc(layers.data("x", [3]), 1)))
    name = optimizer._global_learning_rate().name
    exe = fluid.Executor(PLACE)
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        fluid.global_scope().find_var(name).get_tensor().set(np.array([0.5]), PLACE)
        with pytest.raises(fluid.core.EnforceNotMet, match="must be of one data type"):
            exe.run(main, feed={"x": np.ones((2, 3), "float32")})


L = fluid.layers


@pytest.mark.parametrize("places", [0, 2])
def test_a_step_sees_what_was_fed(places):
    x = fluid.data("x", [None, 64])
    before, h = L.reduce_max(x), x
    for _ in range(6):
        h = L.fc(h, 64, act="tanh")
    after = L.elementwise_add(L.scale(h, 0.0), x)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    program = fluid.default_main_program()
    if places:
        program = fluid.CompiledProgram(program).with_data_parallel(places=fluid.cpu_places(places))
    fed, stop = np.zeros((2048, 64), "float32"), threading.Event()
    contents = [np.full(fed.shape, k, "float32").tobytes() for k in range(1, 4)]
    memory = memoryview(fed).cast("B")
    memory[:] = contents[0]

    def write():
        while not stop.is_set():
            for content in contents:
                memory[:] = content

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(10):
            largest, whole = exe.run(program, {"x": fed}, [before, after])
            assert set(largest.tolist()) == {float(whole.min())} == {float(whole.max())}
    finally:
        stop.set()
        thread.join()
