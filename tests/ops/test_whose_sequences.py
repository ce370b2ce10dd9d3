"""Whose sequences results have: as seen on real Paddle 1.8.5, and the same from interpreter and plan."""

import json
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from fluidlite.base.lod import as_lists, as_lod, joined
from fluidlite.ops import registry
from fluidlite.ops.registry import OpView, grad_name

from .fuzz import compare, recipes, ways
from .fuzz.cases import RECIPES, Case, Chooser

# Which slot the offsets came from when every input had others: seen with random cases of each operator.
SEEN = json.loads(Path(recipes.__file__).with_name("whose_sequences.json").read_text())

# The accuracy had the batch's offsets, which do not fit; the cases of the others reduced the first axis.
UNLIKE = {"accuracy", "reduce_any", "reduce_max", "reduce_prod"}

ORDINARY = sorted(op for op in RECIPES if not registry.find(op).lod and registry.find(op).inputs)


class Plain:
    """Answers for variables of two dimensions."""

    def shape(self, name):
        return (3, 3)


@pytest.mark.parametrize("op", sorted(set(SEEN) - UNLIKE))
def test_as_seen(op):
    definition = registry.find(op)
    names = {slot.name: [slot.name] for slot in definition.input_slots if not slot.optional}
    gradients = [name for name in names if name.endswith("@GRAD")]
    attrs = {"axis": 1} if "axis" in definition.attrs else {}
    told = definition.lod_sources(OpView(definition, names, {}, attrs, Plain()))
    for out, slot in SEEN[op].items():
        source = told.get(out, "").rstrip("*") or None
        if op.endswith("_grad"):  # those that arrive have the sequences of the result, XShape has those of X
            assert source in {out.removesuffix("@GRAD"), "XShape", *gradients}
        else:
            assert source == slot, out


def ragged(op: str, draw: int) -> Case | None:
    """A case in which every input has sequences of its own: input k has k empty ones first."""
    rng = np.random.default_rng([5, draw])
    case = RECIPES[op](Chooser(lambda low, high: int(rng.integers(low, high + 1))), op)
    arrays = [array for items in case.inputs.values() for array in items]
    if not arrays or any(array.ndim == 0 or array.size == 0 for array in arrays):
        return None
    found = ways.complete(case)
    if "error" in found or "error" in found.get("@GRAD", {}):
        return None
    number = 0
    for slot, items in [*case.inputs.items(), *((grad_name(s), items) for s, items in case.weights.items())]:
        case.lods[slot] = []
        for array in items:
            number += 1
            case.lods[slot].append([[0] * number + [len(array)]] if array.ndim else None)
    return case


@pytest.mark.parametrize("op", ORDINARY)
def test_interpreter_and_plan_agree(op):
    cases = (case for case in (ragged(op, draw) for draw in range(12)) if case is not None)
    for case in islice(cases, 3):
        want, got = ways.both(case, "interpret"), ways.both(case, "plan")
        assert compare.differences(want, got) == [], case
        for results in (want, got):
            assert "error" not in results, results
        assert _lods(want) == _lods(got), case


def _lods(results):
    return {name: lod for name, lod in results.items() if name.endswith("@LOD")}


def test_joined():
    one, two = as_lod([[0, 1, 2], [0, 2, 5]]), as_lod([[0, 1], [0, 3]])
    assert as_lists(joined([one, two])) == [[0, 1, 2, 3], [0, 2, 5, 8]]
    assert joined([one, ()]) == () == joined([one, one[1:]]) == joined([(), ()])
    assert as_lists(joined([as_lod([[0]]), as_lod([[0, 0]])])) == [[0, 0]]
