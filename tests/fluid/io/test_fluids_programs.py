"""Programs that real Paddle 1.8.5 saved: what those made here do without, and recurrent networks."""

from pathlib import Path

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.dtypes import VarType
from fluidlite.base.place import CPUPlace
from fluidlite.base.storage.messages import messages
from fluidlite.base.tensor_array import TensorArray
from fluidlite.executor import Executor, Scope, create_lod_tensor, scope_guard
from fluidlite.framework import Program
from fluidlite.ops.registry import find

layers = fluid.layers
X = np.random.default_rng(1).uniform(-1, 1, (6, 4)).astype("float32")


pytestmark = pytest.mark.usefixtures("alone")


def sequences(lengths=((1, 3, 2),)):
    return fluid.create_lod_tensor(X, [list(level) for level in lengths], fluid.CPUPlace())


def test_saved_gradient_operators_have_the_attributes_of_their_forward_operators():
    """Fluid adds missing ones to forward operators only, and its gradient kernels ask for them."""
    x = fluid.data("x", [None, 4], "float32")
    loss = layers.mean(layers.softmax(layers.fc(x, 3)))
    fluid.backward.append_backward(loss)
    message = messages().ProgramDesc.FromString(fluid.default_main_program().desc.serialize_to_string())
    attrs = {op.type: {attr.name for attr in op.attrs} for op in message.blocks[0].ops}
    assert attrs["softmax_grad"] >= {"axis", "use_cudnn", "use_mkldnn", "data_format"}
    assert attrs["mul_grad"] >= {"x_num_col_dims", "use_mkldnn", "scale_x", "scale_y", "force_fp32_output"}
    assert "use_mkldnn" not in attrs["softmax"]


def test_places_of_maxima_that_are_declared_as_floats():
    x = fluid.data("x", [None, 4], "float32", lod_level=1)
    rows = layers.scale(x, 1.0)
    loss = layers.reduce_sum(layers.square(layers.sequence_pool(rows, "max")))
    fluid.backward.append_backward(loss, parameter_list=[rows.name])
    main = fluid.default_main_program()
    exe, fetches = fluid.Executor(fluid.CPUPlace()), [loss.name, rows.name + "@GRAD"]
    want = exe.run(main, feed={"x": sequences()}, fetch_list=fetches, return_numpy=False)
    parsed = Program.parse_from_string(main.desc.serialize_to_string())
    (pool,) = (op for op in parsed.global_block().ops if op.type == "sequence_pool")
    parsed.global_block().var(pool.output("MaxIndex")[0])._dtype = VarType.FP32
    for _ in range(2):
        got = exe.run(parsed, feed={"x": sequences()}, fetch_list=fetches, return_numpy=False)
        for found, wanted in zip(got, want, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_blocks_of_gradients_may_assign_arrays_to_themselves():
    x, n = fluid.data("x", [6, 4], "float32"), fluid.data("n", [1], "int64")
    start = layers.scale(x, 1.0)
    i = layers.fill_constant([1], "int64", 0)
    states = layers.array_write(start, i)
    condition = layers.less_than(i, n)
    loop = layers.While(condition)
    with loop.block():
        state = layers.array_read(states, i)
        layers.increment(i)
        layers.array_write(layers.tanh(state), i, states)
        layers.less_than(i, n, cond=condition)
    loss = layers.reduce_sum(layers.square(layers.array_read(states, i)))
    fluid.backward.append_backward(loss, parameter_list=[start.name])
    main = fluid.default_main_program()
    exe, feed = fluid.Executor(fluid.CPUPlace()), {"x": X, "n": np.array([3])}
    (want,) = exe.run(main, feed=feed, fetch_list=[start.name + "@GRAD"])
    assert np.abs(want).min() > 0
    gradient = states.name + "@GRAD"
    block = main.blocks[2]
    block._insert_op(0, type="assign", inputs={"X": [gradient]}, outputs={"Out": [gradient]})
    (got,) = exe.run(main, feed=feed, fetch_list=[start.name + "@GRAD"])
    np.testing.assert_array_equal(got, want)


def test_gradients_of_arrays_are_added_up():
    def array(*values):
        made = TensorArray()
        for index, value in enumerate(values):
            if value is not None:
                made.write(index, np.full((2, 1), value, "float32"))
        return made

    first, second = array(1, None, 3), array(10, 20, 30, 40)
    (total,) = find("sum").call(np, {"X": [first, second]}, {})
    assert [float(value[0, 0]) for value, _ in total] == [11, 20, 33, 40]
    assert [None if value is None else float(value[0, 0]) for value, _ in first] == [1, None, 3]


def test_the_gradient_of_unpadding_has_the_lengths():
    """Fluid's gradient operator does not get them."""
    x, length = fluid.data("x", [None, 3, 2], "float32"), fluid.data("length", [None], "int64")
    batch = layers.scale(x, 1.0)
    rows = layers.sequence_unpad(batch, length)
    loss = layers.reduce_sum(layers.square(rows))
    fluid.backward.append_backward(loss, parameter_list=[batch.name])
    main = fluid.default_main_program()
    (op,) = (op for op in main.global_block().ops if op.type == "sequence_unpad_grad")
    feed = {"x": X.reshape(4, 3, 2), "length": np.array([2, 0, 3, 1])}
    exe = fluid.Executor(fluid.CPUPlace())
    (want,) = exe.run(main, feed=feed, fetch_list=[batch.name + "@GRAD"])
    del op.inputs["Length"]
    main._changed()
    (got,) = exe.run(main, feed=feed, fetch_list=[batch.name + "@GRAD"])
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal((want != 0).all(axis=2).sum(axis=1), [2, 0, 3, 1])


@pytest.mark.parametrize("version", [None, 0, 1005002, 1006003, 1007002, 3000000])
def test_programs_of_other_versions_with_fewer_attributes(version):
    """Earlier releases knew fewer attributes; those that are missing have the defaults, and unknown ones do nothing."""
    x = fluid.data("x", [None, 4], "float32")
    out = layers.softmax(layers.fc(layers.dropout(x, 0.3, is_test=True), 3, act="relu"))
    exe, main = fluid.Executor(fluid.CPUPlace()), fluid.default_main_program()
    exe.run(fluid.default_startup_program())
    (want,) = exe.run(main, feed={"x": X}, fetch_list=[out])
    message = messages().ProgramDesc.FromString(main.desc.serialize_to_string())
    message.ClearField("version")
    if version is not None:
        message.version.version = version
    for op in message.blocks[0].ops:
        needed = {"dropout_prob", "is_test"}
        kept = [attr for attr in op.attrs if attr.name in needed]
        del op.attrs[:]
        op.attrs.extend(kept)
        op.attrs.add(name="of_a_later_release", type=2, s="something")
    parsed = Program.parse_from_string(message.SerializeToString())
    np.testing.assert_array_equal(exe.run(parsed, feed={"x": X}, fetch_list=[out.name])[0], want)


def test_sums_of_gradients_of_which_some_are_not_computed():
    """Fluid leaves a gradient in the sum when no operator computes it, as behind labels that are cast to integers."""
    x = fluid.data("x", [None, 4])
    rows = layers.scale(x, 1.0)
    loss = layers.reduce_sum(layers.square(rows) + rows)
    fluid.backward.append_backward(loss, parameter_list=[rows.name])
    main, gradient = fluid.default_main_program(), rows.name + "@GRAD"
    main.global_block().create_var(name=gradient + "@RENAME@block0@7", shape=[-1, 4], dtype="float32")
    saved = messages().ProgramDesc.FromString(main.desc.serialize_to_string())
    (total,) = (op for op in saved.blocks[0].ops if op.type == "sum")
    total.inputs[0].arguments.append(gradient + "@RENAME@block0@7")
    parsed = Program.parse_from_string(saved.SerializeToString())
    for _ in range(2):
        (got,) = fluid.Executor(fluid.CPUPlace()).run(parsed, {"x": X}, [gradient])
        np.testing.assert_allclose(got, 2 * X + 1, rtol=1e-6)


def test_sums_with_a_gradient_that_is_fed_or_in_the_scope():
    fed, x = fluid.data("a@GRAD", [2], "float32"), fluid.data("x", [2], "float32")
    held = layers.create_global_var([2], 5.0, "float32", persistable=True, name="b@GRAD")
    total = layers.sums([layers.relu(x), fed, held])
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    parsed = Program.parse_from_string(fluid.default_main_program().desc.serialize_to_string())
    feed = {"x": np.ones(2, "float32"), "a@GRAD": np.ones(2, "float32")}
    np.testing.assert_array_equal(exe.run(parsed, feed, [total.name])[0], [7, 7])


def test_the_gradient_of_group_norm_is_saved_with_the_result_that_it_reads_in_fluid():
    images = layers.scale(fluid.data("x", [None, 4, 2, 2]), 1.0)
    normal = layers.group_norm(images, 2)
    fluid.backward.append_backward(layers.reduce_sum(normal))
    saved = messages().ProgramDesc.FromString(fluid.default_main_program().desc.serialize_to_string())
    (gradient,) = (op for op in saved.blocks[0].ops if op.type == "group_norm_grad")
    assert {slot.parameter: list(slot.arguments) for slot in gradient.inputs}["Y"] == [normal.name]


DATA = Path(__file__).parent / "data" / "recurrent"


def numbers(seed, *shape):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype("float32")


@pytest.fixture
def program():
    return Program.parse_from_string((DATA / "program").read_bytes())


def test_saved_by_paddle(program):
    """Values, and gradients that Fluid declares in the blocks of gradients, or not at all."""
    results = np.load(DATA / "results.npz")
    scope = Scope()
    for name, value in {"w": numbers(1, 3, 4), "u": numbers(2, 4, 4), "b": numbers(3, 4)}.items():
        scope.var(name).get_tensor().set(value, CPUPlace())
    feed = {
        "x": create_lod_tensor(numbers(4, 9, 3), [[2, 4, 3]], CPUPlace()),
        "start": numbers(5, 3, 4),
        "s": numbers(6, 4, 2, 3),
    }
    names = [name.replace("_grad", "@GRAD") for name in results.files]
    with scope_guard(scope):
        found = Executor(CPUPlace()).run(program, feed=feed, fetch_list=names, return_numpy=False)
    assert len(names) == 9
    for name, got, want in zip(names, found, results.values(), strict=True):
        np.testing.assert_allclose(np.array(got), want, rtol=1e-5, atol=1e-7, err_msg=name)
    assert found[names.index("x@GRAD")].recursive_sequence_lengths() == [[2, 4, 3]]


def test_saved(program):
    """A saved program is read unchanged."""
    parsed = Program.parse_from_string(program.desc.serialize_to_string())
    assert parsed.to_string() == program.to_string()
    assert [block.forward_block_idx for block in parsed.blocks] == [-1, -1, -1, 2, 1]
