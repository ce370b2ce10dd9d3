"""Sparse gradients of embeddings: the programs, and three steps against real Paddle 1.8.5, planned and interpreted."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import unique_name
from fluidlite.base.dtypes import VarType
from fluidlite.base.selected_rows import SelectedRows
from fluidlite.executor.executor import run_program

L, C, opt = fluid.layers, fluid.clip, fluid.optimizer

IDS = [[[1], [3], [1]], [[0], [0], [2]], [[3], [1], [3]]]
TARGET = np.array([[1], [2], [-1]], "float32")
TABLE = (np.arange(10).reshape(5, 2) / 10 - 0.5).astype("float32")

OPTIMIZERS = {
    "sgd": lambda: opt.SGD(0.5),
    "momentum": lambda: opt.Momentum(0.5, 0.9),
    "adam": lambda: opt.Adam(0.1),
    "lazy adam": lambda: opt.Adam(0.1, lazy_mode=True),
    "adagrad": lambda: opt.Adagrad(0.1),
    "rmsprop": lambda: opt.RMSProp(0.1, momentum=0.5, centered=True),
    "lamb": lambda: opt.Lamb(0.1),
    "sgd by global norm": lambda: opt.SGD(0.5, grad_clip=C.GradientClipByGlobalNorm(0.2)),
    "lazy adam by norm": lambda: opt.Adam(0.1, lazy_mode=True, grad_clip=C.GradientClipByNorm(0.1)),
    "adagrad by value": lambda: opt.Adagrad(0.1, grad_clip=C.GradientClipByValue(0.05)),
    "sgd with l2": lambda: opt.SGD(0.5, regularization=fluid.regularizer.L2Decay(0.1)),
}

# The table after three steps of `train` on Paddle 1.8.5.
RECORDED = {
    "sgd": [-0.411111, -0.311111, 2.677778, 2.777778, -1.122222, -1.022222, 1.655555, 1.755556, 0.3, 0.4],
    "momentum": [1.018888, 1.118888, 0.677778, 0.777778, -2.150222, -2.050222, -1.462445, -1.362445, 0.3, 0.4],
    "adam": [-0.270247, -0.170247, -0.060077, 0.039923, -0.317739, -0.217739, 0.299005, 0.399005, 0.3, 0.4],
    "lazy adam": [-0.340195, -0.240195, -0.060077, 0.039923, -0.253201, -0.153201, 0.299005, 0.399005, 0.3, 0.4],
    "adagrad": [-0.335681, -0.235681, -0.092557, 0.007443, -0.294868, -0.194868, 0.232736, 0.332736, 0.3, 0.4],
    "rmsprop": [0.486251, 0.586251, 0.527392, 0.627392, -1.56741, -1.46741, 0.159844, 0.259844, 0.3, 0.4],
    "lamb": [-0.404538, -0.304564, -0.197998, -0.098024, -0.190244, -0.090269, 0.189008, 0.288982, 0.299923, 0.399897],
    "sgd by global norm": [-0.38433, -0.28433, -0.187021, -0.087021, -0.119961, -0.019961, 0.18273, 0.28273, 0.3, 0.4],
    "lazy adam by norm": [-0.339863, -0.239863, -0.051757, 0.048243, -0.252352, -0.152352, 0.309929, 0.409929, 0.3, 0.4],  # noqa: E501
    "adagrad by value": [-0.329292, -0.229292, -0.071558, 0.028442, -0.270708, -0.170708, 0.270718, 0.370718, 0.3, 0.4],
    "sgd with l2": [-0.455077, -0.369339, 2.848343, 2.934081, -1.047349, -0.961611, 1.846516, 1.932253, 0.257213, 0.34295],  # noqa: E501
}  # fmt: skip


def build(make, second=True, sparse=True, **table):
    a, b = fluid.data("a", [None, 1], "int64"), fluid.data("b", [None, 1], "int64")
    y = fluid.data("y", [None, 1], "float32")
    start = fluid.initializer.NumpyArrayInitializer(TABLE)
    attr = fluid.ParamAttr(name="table", initializer=start)
    rows = L.embedding(a, [5, 2], is_sparse=True, param_attr=attr, **table)
    if second:
        rows = rows + L.embedding(b, [5, 2], is_sparse=sparse, param_attr=attr)
    loss = L.mean(L.square_error_cost(L.reduce_sum(rows, dim=1, keep_dim=True), y))
    if make is not None:
        make().minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe, loss


def feed(step):
    return {"a": np.array(IDS[step % 3]), "b": np.array(IDS[(step + 1) % 3]), "y": TARGET}


def table(name="table"):
    return np.array(fluid.global_scope().find_var(name).get_tensor())


def plans():
    caches = [cache for by in fluid.default_main_program()._plans.values() for cache in by.values()]
    return [cache.plans[0] if cache.plans else None for cache in caches]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_three_steps_are_those_of_paddle(name, engine):
    exe, loss = build(OPTIMIZERS[name])
    for step in range(3):
        exe.run(feed=feed(step), fetch_list=[loss])
    np.testing.assert_allclose(table().ravel(), RECORDED[name], rtol=1e-4, atol=2e-6)
    if engine == "plan":
        (plan,) = plans()
        slow = {op.type for op, native in zip(plan.ops, plan.is_native, strict=True) if not native}
        assert slow <= {"rmsprop", "lamb"}


def test_gradients_are_selected_rows():
    build(OPTIMIZERS["sgd by global norm"])
    block = fluid.default_main_program().global_block()
    kinds = {name: var.type for name, var in block.vars.items() if var.type == VarType.SELECTED_ROWS}
    assert sorted(kinds) == [
        "elementwise_mul_0.tmp_0", "merge_selected_rows_0.tmp_0", "table@GRAD", "table@GRAD@RENAME@block0@0",
        "table@GRAD@RENAME@block0@1",
    ]  # fmt: skip
    assert block.var("table@GRAD").shape == (5, 2)
    types = [op.type for op in block.ops]
    at = types.index("merge_selected_rows")
    assert types[at : at + 4] == [
        "merge_selected_rows",
        "get_tensor_from_selected_rows",
        "square",
        "reduce_sum",
    ]


def test_a_dense_part_makes_the_sum_dense(engine):
    exe, loss = build(OPTIMIZERS["lazy adam"], sparse=False)
    block = fluid.default_main_program().global_block()
    assert block.var("table@GRAD").type == VarType.LOD_TENSOR
    before = table()[4].copy()
    grads = [exe.run(feed=feed(step), fetch_list=["table@GRAD"])[0] for step in range(2)]
    assert grads[1].shape == (5, 2) and not np.array_equal(table()[1], TABLE[1])
    np.testing.assert_array_equal(table()[4], before)


def test_decay_makes_the_gradient_dense():
    build(OPTIMIZERS["sgd with l2"])
    block = fluid.default_main_program().global_block()
    assert block.var("table@GRAD@NEWGRAD@").type == VarType.LOD_TENSOR
    assert [op.input("Grad") for op in block.ops if op.type == "sgd"] == [["table@GRAD@NEWGRAD@"]]


def test_fetched_gradients_are_dense(engine):
    exe, _ = build(None)
    pairs = fluid.backward.append_backward(fluid.default_main_program().global_block().var("mean_0.tmp_0"))
    assert [grad.type for _, grad in pairs] == [VarType.SELECTED_ROWS]
    for _ in range(2):
        (grad,) = exe.run(feed=feed(0), fetch_list=["table@GRAD"])
    ids = np.concatenate([np.ravel(IDS[0]), np.ravel(IDS[1])])
    sums = TABLE[np.ravel(IDS[0])].sum(1) + TABLE[np.ravel(IDS[1])].sum(1)
    want = np.zeros((5, 2))
    np.add.at(want, ids, np.tile(2 / 3 * (sums - TARGET[:, 0]), 2)[:, None])
    np.testing.assert_allclose(grad, want, rtol=1e-5)


def test_values_can_be_fetched_with_as_many_rows_as_there_are(engine):
    exe, _ = build(OPTIMIZERS["sgd by global norm"])
    for step in range(3):
        ids = np.union1d(IDS[step], IDS[(step + 1) % 3])
        (values,) = exe.run(feed=feed(step), fetch_list=["get_tensor_from_selected_rows_0.tmp_0"])
        assert values.shape == (len(ids), 2)


def test_clipping_on_the_way_back(engine):
    exe, loss = build(None)
    program = fluid.default_main_program()
    program.global_block().var("table").error_clip = C.ErrorClipByValue(0.01)
    OPTIMIZERS["sgd"]().minimize(loss)
    exe.run(fluid.default_startup_program())
    exe.run(feed=feed(0), fetch_list=[loss])
    # The gradients of both uses are clipped, and their sum again: rows move by the rate times the limit.
    moved = np.abs(table() - TABLE).max(1)
    np.testing.assert_allclose(moved, [0.005, 0.005, 0.005, 0.005, 0], atol=1e-6)


def test_padding_gives_zeros_but_its_row_is_trained_as_in_fluid(engine):
    exe, loss = build(OPTIMIZERS["sgd"], second=False, padding_idx=3)
    exe.run(feed=feed(0), fetch_list=[loss])
    (first,) = exe.run(feed={**feed(0), "a": np.array([[3], [3], [3]])}, fetch_list=["embedding_0.tmp_0"])
    assert not first.any()
    assert not np.array_equal(table()[3], TABLE[3])


@pytest.mark.parametrize("name", ["sgd", "adam", "lazy adam"])
def test_places_share_their_rows(name, engine):
    results = []
    for parallel in (False, True):
        with (
            fluid.program_guard(fluid.Program(), fluid.Program()),
            unique_name.guard(),
            fluid.scope_guard(fluid.Scope()),
        ):
            exe, loss = build(OPTIMIZERS[name])
            program = fluid.default_main_program()
            if parallel:
                program = fluid.CompiledProgram(program).with_data_parallel(
                    loss_name=loss.name, places=fluid.cpu_places(3)
                )
            for step in range(3):
                made = exe.run(program, feed=feed(step), fetch_list=["table@GRAD"])
            results.append((table(), made[0][:5]))
    for alone, shared in zip(*results, strict=True):
        np.testing.assert_allclose(shared, alone, rtol=1e-5, atol=1e-6)


def test_selected_rows_can_be_fed(engine):
    program = fluid.default_main_program()
    block = program.global_block()
    param = block.create_parameter(name="w", shape=[5, 2], dtype="float32")
    grad = block.create_var(name="g", shape=[5, 2], dtype="float32", type=VarType.SELECTED_ROWS, is_data=True)
    block.create_var(name="rate", shape=[1], dtype="float32", persistable=True)
    block.append_op(
        type="sgd", inputs={"Param": param, "Grad": grad, "LearningRate": "rate"}, outputs={"ParamOut": param}
    )
    scope = fluid.global_scope()
    scope.var("w").get_tensor().set(TABLE)
    scope.var("rate").get_tensor().set(np.array([1], "float32"))
    for rows in ([0, 4, 0], [1, 1, 2]):
        gradient = SelectedRows(np.array(rows), np.ones((3, 2), "float32"), 5)
        before = table("w").copy()
        run_program(program, {"g": gradient}, (), scope, True)
        np.testing.assert_allclose(table("w"), before - gradient.dense(), rtol=1e-6)
    with pytest.raises(ValueError, match="was fed as variable 'g', which is VarType.SELECTED_ROWS"):
        run_program(
            program, {"g": SelectedRows(np.array([0]), np.ones((1, 3), "float32"), 5)}, (), scope, True
        )


def test_layers_look_into_gradients(engine):
    exe, loss = build(None, second=False)
    ((_, grad),) = fluid.backward.append_backward(loss)
    merged = L.merge_selected_rows(grad)
    values = L.get_tensor_from_selected_rows(merged)
    assert merged.type == VarType.SELECTED_ROWS and values.shape == (5, 2)
    lengths = L.reduce_sum(L.square(values), dim=1)
    for _ in range(3):
        dense, found, squares = exe.run(feed=feed(0), fetch_list=[grad, values, lengths])
        (alone,) = exe.run(feed=feed(0), fetch_list=[lengths])
    np.testing.assert_allclose(found, dense[np.unique(IDS[0])], rtol=1e-6)
    np.testing.assert_allclose(squares, (found**2).sum(1), rtol=1e-6)
    np.testing.assert_array_equal(alone, squares)
    with pytest.raises(TypeError, match="The type of 'x' in merge_selected_rows must be SELECTED_ROWS"):
        L.merge_selected_rows(loss)
