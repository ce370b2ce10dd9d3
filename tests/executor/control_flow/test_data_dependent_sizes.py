"""Programs with data-dependent sizes: one plan, against the interpreter."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.errors import EnforceNotMet

from .agreement import agree, default

layers = fluid.layers


def places(x):
    chosen = layers.gather_nd(x, layers.where(x > 0.5))
    return [chosen, layers.reduce_sum(layers.fc(layers.unsqueeze(chosen, [1]), 3))]


def elements(x):
    words, index = layers.unique(layers.cast(layers.reshape(x * 9.0, [-1]), "int64"))
    return [words, index, layers.reduce_sum(layers.embedding(layers.unsqueeze(words, [1]), [16, 3]))]


def numbers(x):
    rows = layers.cast(layers.reduce_sum(x, dim=[0, 1]) * 0.5 + 1.0, "int32")
    part = layers.slice(layers.expand(x, [9, 1]), axes=[0], starts=[0], ends=[rows])
    return [part, layers.reduce_sum(layers.fc(part, 3) * 2.0)]


def after_statistics(x):
    normal = layers.batch_norm(x, moving_mean_name="mean", moving_variance_name="variance")
    chosen = layers.gather_nd(normal, layers.where(normal > layers.reduce_mean(normal)))
    return [chosen, layers.reduce_sum(chosen * chosen)]


def twice(x):
    chosen = layers.unsqueeze(layers.gather_nd(x, layers.where(x > 0.4)), [1])
    filtered = layers.gather_nd(chosen, layers.where(chosen > 0.7))
    return [filtered, layers.reduce_sum(layers.fc(chosen, 2)) + layers.reduce_sum(filtered)]


def feed(random, rows, more=0.0):
    return {"x": random.uniform(0, 1, (rows, 3)).astype("float32") + np.float32(more)}


def tokens(_):
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    kept = layers.sequence_slice(words, *(fluid.data(n, [None, 1], "int64") for n in ("from", "many")))
    pooled = layers.sequence_pool(layers.embedding(kept, [12, 3]), "sum")
    return [kept, layers.reduce_sum(layers.fc(pooled, 2))]


def repeated(_):
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    like = fluid.data("like", [None, 1], "float32", lod_level=1)
    rows = layers.sequence_expand(layers.embedding(words, [12, 3]), like, ref_level=0)
    return [rows, layers.reduce_sum(layers.fc(layers.sequence_pool(rows, "max"), 2))]


def padded(_):
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    zero = layers.fill_constant([1], "float32", 0.0)
    batch, lengths = layers.sequence_pad(layers.embedding(words, [12, 3]), zero)
    back = layers.sequence_unpad(layers.fc(batch, 3, num_flatten_dims=2), lengths)
    return [back, layers.reduce_sum(layers.sequence_pool(back, "last"))]


def ragged(random, rows, _=0.0):
    lengths = random.randint(3, 6, rows).tolist()
    made = {"from": random.randint(0, 2, (rows, 1)), "many": random.randint(1, 3, (rows, 1))}
    made["words"] = fluid.create_lod_tensor(
        random.randint(0, 12, (sum(lengths), 1)), [lengths], fluid.CPUPlace()
    )
    times = random.randint(1, 4, rows).tolist()
    made["like"] = fluid.create_lod_tensor(np.zeros((sum(times), 1), "float32"), [times], fluid.CPUPlace())
    return made


def built(build):
    x = fluid.data("x", [None, 3]) if build in DENSE else None
    if x is not None:
        x.stop_gradient = False
    *fetched, loss = build(x)
    fluid.optimizer.SGD(0.05).minimize(loss)
    return [*fetched, loss]


DENSE = [places, elements, numbers, after_statistics, twice]


@pytest.mark.parametrize("build", [*DENSE, tokens, repeated, padded])
def test_programs_with_data_dependent_sizes_are_one_plan(build):
    fetched, random = built(build), np.random.RandomState(1)
    make = feed if build in DENSE else ragged
    names = {var.name for var in fluid.default_main_program().list_vars() if var.is_data}
    feeds = [make(random, rows) for rows in (25, 16, 27, 14, 19, 13, 18, 25)]
    feeds = [{name: each[name] for name in names} for each in feeds]
    text = agree(default(fetched), feeds, 1e-5, 1e-6)
    plans = [line for line in text.splitlines() if " instructions on the CPU" in line]
    assert len(plans) == 1, text
    assert any("mul_grad" in line or "sgd" in line for line in text.splitlines()[:40])


def test_each_of_nothing_one_and_several_has_a_plan():
    """Changes from before a guard fails are rolled back: moving statistics are updated once a step."""
    fetched, random = built(after_statistics), np.random.RandomState(2)
    nothing, one = np.zeros((4, 3), "float32"), np.zeros((4, 3), "float32")
    one[2, 1] = 3.0
    kinds = [nothing, one, feed(random, 4)["x"]]
    feeds = [{"x": kinds[k]} for k in random.randint(0, 3, 24)]
    agree(default(fetched), feeds, 1e-5, 1e-6)


def test_drawing_before_data_dependent_sizes_runs_in_segments():
    x = fluid.data("x", [None, 3])
    chosen = layers.gather_nd(x, layers.where(layers.dropout(x, 0.5) > 0.5))
    exe, random = fluid.Executor(), np.random.RandomState(2)
    for rows in (4, 5, 6, 7):
        exe.run(feed=feed(random, rows), fetch_list=[chosen])
    assert exe.describe().count(" instructions on the CPU") == 2


def test_errors_name_the_operator_and_the_line():
    x, index = fluid.data("x", [None, 3]), fluid.data("index", [None, 1], "int64")
    chosen = layers.gather(layers.gather_nd(x, layers.where(x > 0.5)), index)
    exe, random = fluid.Executor(), np.random.RandomState(2)
    for wrong in (0, 0, 0, 99):
        fed = {**feed(random, 6), "index": np.full((3, 1), wrong)}
        if not wrong:
            exe.run(feed=fed, fetch_list=[chosen])
            continue
        assert "where_index(" in exe.describe()
        with pytest.raises(
            (EnforceNotMet, IndexError), match=r"operator gather: .*test_data_dependent_sizes.py:\d+"
        ):
            exe.run(feed=fed, fetch_list=[chosen])
    exe.run(feed={**feed(random, 6), "index": np.zeros((3, 1), "int64")}, fetch_list=[chosen])


def test_sizes_that_are_always_others_do_not_make_plans_without_end():
    """Sizes that plans are specialised on: one plan per size, up to a limit."""
    x = fluid.data("x", [None, 3])
    chosen = layers.gather_nd(x, layers.where(x > 0.0))
    total = layers.reduce_sum(layers.expand(chosen, [2]))
    exe = fluid.Executor()
    for iteration in range(40):
        values = np.zeros((9, 3), "float32")
        values.flat[: 1 + iteration % 20] = 1.0
        assert exe.run(feed={"x": values}, fetch_list=[total])[0] == 2 * (1 + iteration % 20)
    assert 1 <= exe.describe().count(" instructions on the CPU") <= 3
