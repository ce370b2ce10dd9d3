"""Random cases of operators and random programs on all engines; some with recorded results of real Paddle 1.8.5.

`scripts/fuzz_operators.py` runs as many as are wanted; see docs/fuzzing.md.
"""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fluidlite._ext import kernels
from fluidlite.ops import registry

from .fuzz import compare, recipes, ways
from .fuzz.cases import RECIPES, Case, Chooser, from_json
from .fuzz.graphs import Graph

RECORDED = Path(recipes.__file__).with_name("recorded.json.gz")
QUICK = settings(
    max_examples=2,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)

# Queues, files and SelectedRows are for other tests; what is drawn anew cannot be compared.
WITHOUT_RECIPE = {
    "create_double_buffer_reader", "create_py_reader", "read", "feed", "fetch", "print", "dense_from_selected_rows",
    "get_tensor_from_selected_rows", "merge_selected_rows", "dpsgd", "gaussian_random", "nce",
    "gaussian_random_batch_size_like", "randint", "randperm", "sampling_id", "seed", "truncated_gaussian_random",
    "uniform_random", "uniform_random_batch_size_like",
}  # fmt: skip


def choosers() -> st.SearchStrategy[Chooser]:
    return st.builds(lambda data: Chooser(lambda low, high: data.draw(st.integers(low, high))), st.data())


def test_the_list_names_operators():
    assert set(registry.known_types()) >= WITHOUT_RECIPE | set(RECIPES)
    assert not WITHOUT_RECIPE & set(RECIPES)


@pytest.mark.parametrize("op", sorted(RECIPES))
def test_every_way_agrees(op):
    @QUICK
    @given(choosers())
    def agree(chooser):
        case = RECIPES[op](chooser, op)
        want = ways.complete(case)
        for way, got in ways.all_ways(case, 1):
            assert compare.differences(want, got) == [], (way, case)

    agree()


@settings(parent=QUICK, max_examples=20)
@given(choosers())
def test_programs_by_plan_and_interpreter(chooser):
    graph = Graph(chooser)
    fetches = graph.build()
    for want, got in zip(graph.run("interpret", fetches), graph.run("plan", fetches), strict=True):
        assert compare.differences(want, got, rtol=1e-3) == []


@pytest.mark.parametrize("number", range(8))
def test_as_recorded_on_real_paddle(number):
    lines = gzip.decompress(RECORDED.read_bytes()).decode().splitlines()
    assert len(lines) > 400
    for line in lines[number::8]:
        fields, real = from_json(json.loads(line))
        case = Case(**fields)
        messages = compare.differences(real, ways.both(case, "plan"), classes=False)
        assert all(compare.NOT_FINITE in text for text in messages), (case, messages)


def test_another_instruction_set_is_used_temporarily():
    first = kernels.targets()[0]
    assert kernels.use("baseline") == first
    try:
        assert kernels.address("relu.f32") == kernels.table("baseline")["relu.f32"]
    finally:
        assert kernels.use(first) == "baseline"
    with pytest.raises(ValueError, match="this machine cannot run 'neon'"):
        kernels.use("neon")


def test_a_difference_is_described():
    one, other = {"Out": np.ones(3, "float32")}, {"Out": np.array([1, 2, 1], "float32")}
    assert compare.differences(one, one) == []
    assert "1 of 3 elements, at (1,)" in compare.differences(one, other)[0]
    assert "shapes" in compare.differences(one, {"Out": np.ones(2, "float32")})[0]
    assert "dtypes" in compare.differences(one, {"Out": np.ones(3)})[0]
    assert "only the second raises" in compare.differences(one, ways.failure(ValueError("no")))[0]
    assert "crash" in compare.differences({"crash": True}, one)[0]
    assert (
        compare.differences(ways.failure(ValueError("a")), ways.failure(TypeError("b")), classes=False) == []
    )
