"""Sparse gradients of nce and hsigmoid in training, planned and interpreted, against real Paddle 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.dtypes import VarType

L, opt = fluid.layers, fluid.optimizer

OPTIMIZERS = {
    "sgd": lambda: opt.SGD(0.1),
    "adam": lambda: opt.Adam(0.1),
    "lazy adam": lambda: opt.Adam(0.1, lazy_mode=True),
}
TABLE = [[0, 1, 3, -1], [0, 2, -1, -1], [0, 1, 5, -1], [0, 2, -1, -1], [0, 1, 3, -1]]
CODE = [[0, 1, 0, -1], [1, 0, -1, -1], [0, 0, 1, -1], [1, 1, -1, -1], [0, 0, 0, -1]]
RECORDED = {
    ("nce", "sgd"): [0.7523535, 0.7514388, 0.750528],
    ("nce", "adam"): [0.7523535, 0.7222689, 0.7010874],
    ("nce", "lazy adam"): [0.7523535, 0.7222689, 0.7010874],
    ("hsigmoid", "sgd"): [2.67924, 2.6673026, 2.6557059],
    ("hsigmoid", "adam"): [2.67924, 2.5496929, 2.4647908],
    ("hsigmoid", "lazy adam"): [2.67924, 2.5496929, 2.4647908],
}


def costs(kind, x, label):
    if kind == "nce":
        return L.nce(x, label, 10, num_neg_samples=4, seed=3, is_sparse=True)
    table, code = (fluid.data(name, [None, 4], "int64") for name in ("t", "c"))
    return L.hsigmoid(x, label, 6, path_table=table, path_code=code, is_custom=True, is_sparse=True)


def train(kind, make, persistable=False):
    """The losses of three steps, and the last gradient of the table if it is to last."""
    x, label = fluid.data("x", [None, 3], "float32"), fluid.data("y", [None, 1], "int64")
    loss = L.mean(costs(kind, L.fc(x, 3), label))
    make().minimize(loss)
    main = fluid.default_main_program()
    weight = [p.name for p in main.all_parameters()][2]
    grad = main.global_block().var(weight + "@GRAD")
    assert grad.type == VarType.SELECTED_ROWS
    grad.persistable = persistable
    exe, draw = fluid.Executor(), np.random.RandomState(0)
    exe.run(fluid.default_startup_program())
    for parameter in main.all_parameters():
        start = np.random.RandomState(parameter.shape[0]).rand(*parameter.shape) - 0.5
        fluid.global_scope().find_var(parameter.name).get_tensor().set(start.astype("float32"))
    feed = {"x": draw.rand(5, 3).astype("float32"), "y": draw.randint(0, 5, (5, 1))}
    if kind == "hsigmoid":
        feed |= {"t": np.array(TABLE), "c": np.array(CODE)}
    losses = [exe.run(feed=feed, fetch_list=[loss])[0].item() for _ in range(3)]
    return losses, fluid.global_scope().find_var(grad.name).get_selected_rows() if persistable else None


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("kind", ["nce", "hsigmoid"])
def test_losses(fresh, engine, kind, name):
    losses, _ = train(kind, OPTIMIZERS[name])
    np.testing.assert_allclose(losses, RECORDED[kind, name], rtol=2e-6)


def test_a_sparse_gradient_that_lasts_changes_nothing(fresh):
    losses, rows = train("nce", OPTIMIZERS["adam"], persistable=True)
    np.testing.assert_allclose(losses, RECORDED["nce", "adam"], rtol=2e-6)
    assert rows.rows() == [0, 1, 2, 3, 4, 5, 7, 9] and rows.height() == 10
    assert np.array(rows.get_tensor()).shape == (8, 3)
