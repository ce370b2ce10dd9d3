"""Eager operators at many sizes: open variants give, to the bit, what a variant for each size gives.

`scripts/fuzz_operators.py --sizes` tries as many cases as are wanted; see docs/fuzzing.md.
"""

import pytest

from .fuzz import open_variants, recipes, sizes
from .fuzz.cases import RECIPES, drawn

assert recipes.__all__

EVERYWHERE = (
    "relu", "tanh", "gelu", "mul", "matmul", "elementwise_add", "elementwise_mul", "softmax", "layer_norm",
    "batch_norm", "conv2d", "pool2d", "reduce_sum", "mean", "transpose2", "concat", "split", "lookup_table",
    "cross_entropy", "softmax_with_cross_entropy", "dropout", "scale", "cast", "stack", "reshape2", "gather",
    "slice", "expand",
)  # fmt: skip
"""Operators that must be open: those that most networks have."""


@pytest.mark.parametrize("op", sorted(RECIPES))
def test_open_variants_give_what_exact_ones_give(op):
    # Other sizes of every axis for one case, of the rows for another, as those that say more by themselves.
    for number, changed in ((0, sizes.by_every_axis), (1, sizes.by_rows)):
        messages, _ = open_variants.check(drawn(op, number), changed)
        assert messages == []


@pytest.mark.parametrize("op", EVERYWHERE)
def test_operators_of_most_networks_have_open_variants(op):
    assert any(open_variants.check(drawn(op, number))[1] >= 4 for number in range(12))
