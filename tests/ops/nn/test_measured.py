"""The way that a convolution goes is found by trying and remembered, where that is asked for; results are the same."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite._ext import kernels
from fluidlite.ops.nn import measured

from ...engines import run_by

pytestmark = [
    pytest.mark.usefixtures("alone"),
    pytest.mark.skipif("conv2d.f32" not in kernels.table(), reason="there is one way without oneDNN"),
]

SIZES = [2, 8, 6, 7, 16, 3, 3, 1, 2, 1, 1, 0, 1, 1, 1, 1]
PARTS = ["", "_grad_input", "_grad_filter"]
RANDOM = np.random.RandomState(0)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("FLUIDLITE_MEASURE", "1")
    monkeypatch.setattr(measured, "_known", {})
    return tmp_path / "fluidlite" / "convolutions.json"


def forgotten(monkeypatch):
    monkeypatch.setattr(measured, "_known", {})


@pytest.mark.parametrize("part", PARTS)
def test_what_was_found_is_remembered(part, cache, monkeypatch):
    tried = []
    monkeypatch.setattr(measured, "_tried", lambda *given: tried.append(given) or True)
    assert measured.is_plain(part, SIZES, False)
    assert measured.is_plain(part, [5, *SIZES[1:]], False)  # all batches go the same way
    forgotten(monkeypatch)
    assert measured.is_plain(part, SIZES, False)
    assert len(tried) == 1
    ((key, value),) = json.loads(cache.read_text()).items()
    assert value is True and kernels.used() in key and f"conv2d{part} 8,6,7,16" in key
    measured.is_plain(part, [2, 9, *SIZES[2:]], False)
    assert len(tried) == 2 and len(json.loads(cache.read_text())) == 2


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("usual", [False, True])
def test_another_way_is_taken_if_it_is_clearly_quicker(part, usual, monkeypatch):
    class Timed:
        clock, costs = 0.0, {}

        def __init__(self, count):
            self.slots = [None] * count

        def add(self, kernel, slots, ints):
            self.cost = self.costs["_plain" in kernel]

        def bind(self, slot, array):
            self.slots[slot] = array

        def run(self):
            Timed.clock += self.cost

    from fluidlite._ext import engine

    monkeypatch.setattr(engine, "Engine", Timed)
    monkeypatch.setattr(measured.time, "perf_counter", lambda: Timed.clock)
    for ours, theirs, plain in ((1.0, 2.0, True), (2.0, 1.0, False), (1.0, 1.05, usual), (1.05, 1.0, usual)):
        Timed.costs = {True: ours, False: theirs}
        assert measured._tried(part, SIZES, usual) == plain


@pytest.mark.parametrize("part", PARTS)
def test_both_ways_are_tried(part):
    assert measured._tried(part, SIZES, False) in (False, True)
    assert measured._tried(part, [1, *SIZES[1:15], 1], True) in (False, True)


def test_the_first_entry_written_stays(cache, monkeypatch):
    cache.parent.mkdir()
    key = measured._key("", SIZES)

    def late(*given):
        cache.write_text(json.dumps({key: False, "other": True}))
        return True

    monkeypatch.setattr(measured, "_tried", late)
    assert not measured.is_plain("", SIZES, True)
    assert json.loads(cache.read_text()) == {key: False, "other": True}


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00"])
def test_a_damaged_file_is_written_anew(text, cache, monkeypatch):
    cache.parent.mkdir()
    cache.write_text(text)
    monkeypatch.setattr(measured, "_tried", lambda *given: True)
    assert measured.is_plain("", SIZES, False)
    assert list(json.loads(cache.read_text()).values()) == [True]


def test_where_nothing_can_be_written(tmp_path, monkeypatch):
    (tmp_path / "fluidlite").write_text("no folder")
    tried = []
    monkeypatch.setattr(measured, "_tried", lambda *given: tried.append(given) or True)
    assert measured.is_plain("", SIZES, False) and measured.is_plain("", SIZES, False)
    assert len(tried) == 1


def test_many_write_at_the_same_time(cache, monkeypatch):
    monkeypatch.setattr(measured, "_tried", lambda part, sizes, usual: sizes[1] % 2 == 0)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda c: measured.is_plain("", [2, c, *SIZES[2:]], False), [*range(1, 41)] * 2))
    kept = json.loads(cache.read_text())
    assert len(kept) == 40 and sum(kept.values()) == 20
    assert [each.name for each in cache.parent.iterdir() if "json" in each.name] == [cache.name]


def test_nothing_is_tried_of_no_images():
    assert measured.is_plain("", [0, *SIZES[1:]], True) and not measured.is_plain("", [0, *SIZES[1:]], False)


@pytest.mark.parametrize("plain", [False, True])
def test_results_are_the_same_either_way(plain, monkeypatch):
    monkeypatch.setattr(measured, "_tried", lambda *given: plain)
    x = fluid.data("x", [None, 8, 6, 7])
    x.stop_gradient = False
    numbers = fluid.ParamAttr(initializer=fluid.initializer.Uniform(-1, 1))
    out = layers.conv2d(x, 16, 3, padding=1, param_attr=numbers, bias_attr=False)
    loss = layers.reduce_mean(layers.square(out))
    gradients = [g.name for _, g in fluid.backward.append_backward(loss)] + ["x@GRAD"]
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        exe.run(fluid.default_startup_program())
        results = []
        for engine in ("plan", "interpret"):
            with run_by(engine):
                for n in (2, 3):
                    data = np.linspace(-1, 1, n * 8 * 42, dtype="float32").reshape(n, 8, 6, 7)
                    results.append(exe.run(feed={"x": data}, fetch_list=[out, loss, *gradients]))
        for got, want in zip(sum(results[:2], []), sum(results[2:], []), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)
    assert len(measured._known) == 3


def test_it_is_off_unless_asked_for(cache, monkeypatch):
    monkeypatch.delenv("FLUIDLITE_MEASURE")
    monkeypatch.setattr(measured, "_tried", lambda *given: 1 / 0)
    x = fluid.data("x", [None, 8, 6, 7])
    out = layers.conv2d(x, 16, 3)
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        exe.run(fluid.default_startup_program())
        exe.run(feed={"x": np.ones((2, 8, 6, 7), "float32")}, fetch_list=[out])
    assert not cache.exists()


def test_processes_agree(cache):
    script = (
        "from fluidlite.ops.nn import measured\n"
        f"print(measured.is_plain('', {SIZES}, False), measured.is_plain('_grad_filter', {SIZES}, False))"
    )
    root = str(Path(fluid.__file__).parents[1])
    command = [sys.executable, "-c", script]
    running = [subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    found = {process.communicate(timeout=120)[0] for process in running}
    assert len(found) == 1 and len(json.loads(cache.read_text())) == 2
