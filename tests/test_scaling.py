"""Predictions of `benchmarks/scaling.py`, some of which docs/performance.md repeats."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def scaling():
    spec = importlib.util.spec_from_file_location("scaling", ROOT / "benchmarks" / "scaling.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["scaling"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["scaling"]


def test_sums(scaling):
    wire = scaling.Network("wire", 1.0, 10.0)
    assert scaling.all_reduce(2, 40.0, wire) == 2 + 4  # two messages of 20 bytes
    assert scaling.all_reduce(8, 80.0, wire) == 6 + 14  # 3 halvings, 3 doublings, 7/8 of the bytes each way
    assert scaling.all_gather(4, 10.0, wire) == 2 + 3


def test_steps(scaling):
    wire = scaling.Network("wire", 0.0, 10.0)
    model = scaling.Model("m", 6.0, 30.0)
    assert scaling.collective(2, model, wire, overlaps=False) == 6 + 3
    assert scaling.collective(2, model, wire, overlaps=True) == 2 + 4
    assert scaling.with_servers(2, model, wire, waits=True) == 6 + 3
    assert scaling.with_servers(2, model, wire, waits=False) == 6
    table = scaling.Model("t", 1.0, 0.0, 20.0)
    assert scaling.exchange(11, table, wire) == 20  # everybody gets the rows of ten others
    assert scaling.stops(table, scaling.Network("slow", 0.0, 1.0), "collective, after backward") == "2"
    assert scaling.efficiency(2, model, wire, "collective, after backward") == pytest.approx(2 / 3)


def test_the_page_has_what_is_predicted(scaling):
    rows = [line.split("|")[1:-1] for line in scaling.tables().split("\n") if "Gb/s" in line]
    beside = {
        (model.split(":")[0].strip(), network.strip()): rates.split(", ")[-1].split(" ")[0]
        for model, network, _, rates, *_ in rows
    }
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf8")
    slow, large, fast = (
        beside["ResNet-50", "10 Gb/s"], beside["BERT-base", "10 Gb/s"], beside["BERT-base", "100 Gb/s"]
    )  # fmt: skip
    assert f"keeps {slow}% of its rate at 10 Gb/s, BERT-base {large}% ({fast}% at 100 Gb/s)" in page
