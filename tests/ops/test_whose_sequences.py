"""LoD of results: as recorded from real Paddle 1.8.5, and equal between interpreter and plan."""

import gzip
import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluidlite.base.lod import as_lists, as_lod, joined
from fluidlite.base.place import CPUPlace
from fluidlite.executor import Executor, Scope, scope_guard
from fluidlite.framework import Program
from fluidlite.ops import registry
from fluidlite.ops.registry import grad_name

from ..engines import run_by
from .fuzz import compare, ways
from .fuzz.cases import RECIPES, Case, Chooser
from .in_program import OneOperator

CASES: dict[str, list[Any]] = {}
"""For each operator the recorded cases: inputs by slot as [type, shape, elements], attributes, how many variables each
output slot has, and runs. A run is the offsets of the inputs by name (null: those of `distinct_lods`) and the LoD of
each output: the name of an input that has it, offsets that the operator made, or null. `fuzz/real.py` runs such
cases in Paddle."""

for line in gzip.decompress(Path(__file__).with_name("whose_sequences.json.gz").read_bytes()).splitlines():
    op_type, *rest = json.loads(line)
    CASES.setdefault(op_type, []).append(rest)

OF_NO_ROW = {"Accuracy_out_0"}
"""Results that are no row of the batch; in Paddle they have its sequences if it has one row."""

ORDINARY = sorted(
    op for op in RECIPES if not registry.find(op).sequences.takes_lod and registry.find(op).inputs
)


def distinct_lods(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Sequences of its own for every input: number k has k empty ones first."""
    return {
        name: [[0] * number + [len(array)]]
        for number, (name, array) in enumerate(arrays.items(), 1)
        if len(array)
    }


def undeclared(program: Program) -> Program:
    """The program as if it came from a file that declares no shapes and no levels of sequences."""
    for var in program.list_vars():
        var.desc.set_shape([])
        var.desc.set_lod_level(0)
    return Program.parse_from_string(program.desc.serialize_to_string())


def found(program: Program, feed: dict[str, Any], names: list[str], engine: str) -> dict[str, Any]:
    """Run a program: the rows of each result and its LoD."""
    with run_by(engine):
        with scope_guard(Scope()):
            got = Executor(CPUPlace()).run(program, feed=feed, fetch_list=names, return_numpy=False)
    return {name: (np.array(one).shape[:1], one.lod()) for name, one in zip(names, got, strict=True)}


@pytest.mark.parametrize("op", sorted(CASES))
def test_as_seen(op):
    for inputs, attrs, outputs, runs in CASES[op]:
        arrays = {
            slot: [np.array(values, dtype).reshape(shape) for dtype, shape, values in given]
            for slot, given in inputs.items()
        }
        by_name = {f"{slot}_{k}": array for slot, given in arrays.items() for k, array in enumerate(given)}
        for given, seen in runs:
            lods = distinct_lods(by_name) if given is None else given
            by_slot = {
                slot: [lods.get(f"{slot}_{k}") for k in range(len(items))] for slot, items in arrays.items()
            }
            made = {slot: [None] * count for slot, count in outputs.items()}
            one = OneOperator(registry.find(op), arrays, attrs, made, by_slot)
            program = undeclared(one.program)
            for engine in ("interpret", "plan"):
                for name, (rows, lod) in found(program, one.feed, list(seen), engine).items():
                    whose = None if name in OF_NO_ROW else seen[name]
                    want = lods[whose] if isinstance(whose, str) else whose or []
                    if isinstance(whose, str) and rows != (want[-1][-1],):
                        want = []  # they would end elsewhere than the rows
                    assert lod == want, (name, engine, attrs, whose)


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
    for case in islice(cases, 2):
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
