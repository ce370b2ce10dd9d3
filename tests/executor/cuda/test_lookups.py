"""Several lookups in one table on a GPU: their gradients add to one array."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fluidlite import layers, optimizer
from fluidlite.layers import concat, embedding, reshape

from .test_fusion import agree, joined

pytestmark = [pytest.mark.usefixtures("alone"), pytest.mark.usefixtures("cuda")]


def words(count, tables=("table",), **more):
    """A loss of `count` words, looked up alternately in these tables."""
    ids = [layers.data(f"word{k}", [1], dtype="int64") for k in range(count)]
    found = [
        reshape(embedding(one, [11, 3], param_attr=tables[k % len(tables)], **more), [-1, 3])
        for k, one in enumerate(ids)
    ]
    return layers.mean(layers.square(layers.fc(concat(found, 1), 2)))


def feeds(count, steps=3):
    draw = np.random.default_rng(0)
    return [{f"word{k}": draw.integers(0, 11, (5, 1)) for k in range(count)} for _ in range(steps)]


@pytest.mark.parametrize("padding", [None, 4])
def test_gradients_of_one_table_are_added_up_at_once(padding):
    loss = words(4, padding_idx=padding)
    optimizer.SGD(0.1).minimize(loss)
    assert any(
        kind["sum"] == 1 and len(kind) == 2 and sum(kind.values()) == 5
        for kind in joined([loss], feeds(4)[0])
    )
    agree([loss], feeds(4))


def test_gradients_of_two_tables_are_not_fused():
    loss = words(4, ("one", "two"))
    optimizer.SGD(0.1).minimize(loss)
    kinds = joined([loss], feeds(4)[0])
    assert not any(kind["lookup_table_grad"] + kind["lookup_table_v2_grad"] > 2 for kind in kinds)
    agree([loss], feeds(4))


def test_fetched_gradients_are_computed():
    loss = words(2)
    optimizer.SGD(0.1).minimize(loss)
    block = loss.block
    part = next(
        op.output_arg_names[0] for op in block.ops if op.type.startswith("lookup_table") and "grad" in op.type
    )
    kinds = joined([loss, part], feeds(2)[0])
    assert Counter(["sum"]) in kinds or any("sum" in kind and "sgd" in kind for kind in kinds)
    agree([loss, part], feeds(2))
