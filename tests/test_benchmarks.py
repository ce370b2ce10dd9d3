"""Every benchmark starts with a tiny setting and prints its table without peers."""

import importlib
import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
IMAGES = Path(__file__).parents[1] / "docs" / "img"
TINY = {
    "tutorial": ["--epochs", "1", "--mode", "iterable"],
    "overhead": ["--seconds", "0.02"],
    "eager": ["--seconds", "0.02", "--only", "five 8x8, batch 4", "--only", "lenet"],
    "guide2": ["--images", "128", "--epochs", "1", "--only", "PTB", "--only", "as much Python"],
    "loader": ["--batches", "2", "--epochs", "1", "--only", "samples", "--only", "1.6 MB batches"],
    "from_files": ["--lines", "200"],
    "dataset_loader": ["--batches", "3", "--epochs", "1", "--only", "samples"],
    "workers": ["--batches", "3", "--epochs", "1", "--only", "samples"],
    "pictures": ["--pictures", "32"],
    "soak": ["--batches", "30"],
    "import_time": [],
    "memory": ["--only", "resnet-20"],
    "kernels": ["--seconds", "0.02", "--only", "top-k", "--only", "conv2d, channels last"],
    "networks": ["--seconds", "0.02", "--only", "softmax regression"],
    "models": ["--seconds", "0.02", "--only", "word2vec"],
    "table": ["--seconds", "0.02", "--threads", "1", "--only", "mlp", "--only", "eager: mlp"],
    "growth": ["--scale", "0.002", "--factor", "2", "--only", "uses", "--only", "encoder"],
    "sequences": ["--steps", "1"],
    "tagging": ["--steps", "1"],
    "decoding": ["--steps", "1", "--only", "beam search", "--only", "attention"],
    "shapes": ["--sizes", "2", "--passes", "1"],
    "data_sizes": ["--steps", "1", "--only", "where [32", "--only", "unique, 1,200"],
    "ragged": ["--seconds", "0.02", "--only", "sentences"],
    "gpu_steps": ["--seconds", "0.02", "--only", "mlp", "--place", "cpu"],
    "gpu_tutorial": ["--epochs", "1", "--place", "cpu"],
    "gpu_loader": ["--batches", "3", "--images", "1", "--width", "8", "--layers", "1", "--place", "cpu"],
}
STAGES = [
    *("build", "minimize", "clone", "prune", "serialize", "parse"),
    *("startup", "plan", "interpret", "first step", "inference"),
]
ROWS = {
    "memory": [f"resnet-20{part}" for part in (", step", ", parameters", ", alive", ", arena", "")],
    "tutorial": ["iterable: wall, s", "iterable: peak, MB"],
    "overhead": ["step", "engine alone"],
    "pictures": ["loop", "1 threads", "2 threads", "2 x 2 threads / 1 thread"],
    "eager": ["five 8x8, batch 4", "lenet", "five 8x8, batch 4 (2.0)"],
    "guide2": [
        *(f"PTB (20), {where}" for where in ("thread", "process", "process kept")),
        *(
            f"as much Python, {what}"
            for what in (
                "thread",
                "process",
                "process kept",
                "reading alone",
                "training alone",
                "process / larger alone",
                "process / thread",
            )
        ),
    ],
    "loader": [
        *(
            f"{s}, {mode}"
            for s in ("samples", "1.6 MB batches")
            for mode in ("floor", "iterable", "non-iterable")
        ),
        *(f"{s} / floor" for s in ("samples", "1.6 MB batches")),
    ],
    "from_files": [
        *(f"logistic regression, {threads} thread(s)" for threads in (1, 2)),
        *(
            f"{what}, {threads} thread(s)"
            for threads in (1, 2)
            for what in ("deep model from files", "load", "deep model in memory")
        ),
    ],
    "dataset_loader": [f"samples, {workers} worker(s)" for workers in (0, 1, 2)],
    "workers": [
        f"samples, {where}"
        for place in ("in process", "one worker", "one worker kept")
        for where in (place, f"{place}: first")
    ],
    "soak": ["batches", "epochs", "an epoch, median, ms", "an epoch, longest, ms"],
    "import_time": ["import numpy", "import the package", "above numpy"],
    "kernels": ["top-k", "conv2d, channels last"],
    "networks": ["softmax regression"],
    "models": ["word2vec"],
    "table": ["mlp", "eager: mlp"],
    "growth": [
        *(f"uses: {stage}{kind}" for stage in STAGES for kind in ("", ", growth")),
        *(f"encoder: {stage}, s" for stage in STAGES),
    ],
    "sequences": [
        *(
            "sequence_conv_pool",
            "DynamicRNN",
            "attention",
            "dynamic_lstm",
            "dynamic_gru",
            "StaticRNN",
            "while_loop",
        )
    ],
    "tagging": ["linear_chain_crf", "warpctc"],
    "decoding": ["beam search", "attention"],
    "ragged": [f"sentences{how}" for how in ("", ": NumPy", ": loader")],
    "shapes": [
        *(f"six layers: {what}" for what in ("sizes 20 to 319", "size 170", "varied / even")),
        *(f"six layers: MB more{when}" for when in (" after sizes to 10,000", ", 500 small steps later")),
        *(
            f"{sizes}: {step}"
            for sizes in ("1,000 sizes", "sizes 1 to 10,000")
            for step in ("new", "as last", "new - as last")
        ),
    ],
    "data_sizes": ["where [32, 1000]", "unique, 1,200 of 50"],
    "gpu_steps": ["mlp", "mlp, loss every 20 steps"],
    "gpu_tutorial": ["reading alone, s", "training, s", "training / reading"],
    "gpu_loader": [
        "plain copy, ms",
        "loader, page-locked arrays, ms",
        "loader, ordinary arrays, ms",
        "step without reading, ms",
        "step, double buffer, ms",
        "step, no double buffer, ms",
        "loader / plain copy, page-locked",
        "loader / plain copy, ordinary",
        "step / max(copy, compute)",
    ],
}
DIFFERENCE = re.compile(" - | more")
"""Rows that say how much one thing is above another."""
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="the benchmarks are not here")


@pytest.fixture(autouse=True)
def rates_are_measured_quickly(monkeypatch):
    """Have the rates of this machine measured once instead of ten times."""
    monkeypatch.setenv("BENCHMARK_REPEATS", "3")


def test_all_benchmarks_are_run():
    texts = {path.stem: path.read_text(encoding="utf8") for path in BENCHMARKS.glob("*.py")}
    runs = re.compile(r"def main\(\)|trained\.main\(")
    assert {name for name, text in texts.items() if runs.search(text)} == set(TINY)


@pytest.mark.parametrize("name", TINY)
def test_prints_its_table(python, tmp_path, name):
    if name == "pictures":
        pytest.importorskip("cv2", reason="pictures are decoded by OpenCV")
    file = tmp_path / "values.json"
    options = ["--no-peers", "--rounds", "1", "--json", file, *TINY[name]]
    done = python(BENCHMARKS / f"{name}.py", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    table = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert "fluidlite" in table[0]
    assert [line.split("|")[1].strip() for line in table[2:]] == ROWS[name]
    written = json.loads(file.read_text())
    for row in ROWS[name]:
        assert written["medians"][row]["fluidlite"] > 0 or name == "import_time" or DIFFERENCE.search(row)


def work_of(python, monkeypatch, script, *args):
    """The operations and bytes of each step that the measured script prints."""
    monkeypatch.setenv("BENCHMARK_FLOOR", "1")
    done = python("-m", "fluidlite", BENCHMARKS / "scripts" / script, *args)
    assert done.returncode == 0, done.stdout + done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("WORK "))
    return json.loads(line[len("WORK ") :])


def test_floors_count_products_convolutions_and_bytes(python, monkeypatch):
    work = work_of(python, monkeypatch, "networks_fluid.py", "0.01", "softmax regression", "lenet")
    product, fed = 2 * 512 * 784 * 10, 512 * (784 * 4 + 8)
    trained = 2 * 3 * (784 * 10 + 10) * 4  # read and written: parameters and both moments of Adam
    flops, moved = work["steps"]["softmax regression"]
    assert flops == 2 * product
    assert moved == fed + trained + 2 * (2 + 2) * 4 + 4  # and its powers of beta, and the rate
    convolutions = 2 * 64 * (2 * 24 * 24 * 20 * 25 + 3 * 8 * 8 * 50 * 20 * 25)
    assert work["steps"]["lenet"][0] == convolutions + 3 * 2 * 64 * 800 * 10
    assert 1e9 < work["products"] < 1e13 and all(1e7 < rate < 1e13 for _, rate in work["copies"])


def test_floors_leave_out_what_meets_zeros_and_rows_that_are_not_read(python, monkeypatch):
    works = "dynamic_lstm", "sequence_conv_pool", "StaticRNN"
    steps = work_of(python, monkeypatch, "sequences_fluid.py", "1", *works)["steps"]
    monkeypatch.syspath_prepend(BENCHMARKS / "scripts")
    data = importlib.import_module("sequences_data")
    fed = data.batches(np.random.RandomState(0), 2)
    rows = np.mean([lengths.sum() for lengths, _, _ in fed])
    head = 3 * 2 * 32 * 128 * 2
    first, state = 3 * 2 * rows * 64 * 512, 3 * 2 * (rows - 32) * 128 * 512
    assert steps["dynamic_lstm"][0] == first + state + head
    # A window of three rows misses two at the ends of a sequence, one of four misses one before and two behind.
    taps = (3 * rows - 2 * 32) + (4 * rows - (1 + 1 + 2) * 32)
    assert steps["sequence_conv_pool"][0] == 3 * 2 * taps * 64 * 128 + 2 * head
    products = 20 * 32 * (64 + 128) * 128
    assert steps["StaticRNN"][0] == 3 * 2 * products + head
    sparse, width = (
        work_of(python, monkeypatch, "models_fluid.py", "0.01", "word2vec")["steps"]["word2vec"],
        64 * 4,
    )
    assert sparse[0] == 0 and sparse[1] < 2 * 512 * 6 * width + 2 * 512 * width + 2 * 512 * 7 * 8


@pytest.mark.parametrize(("floor", "verdict"), [(None, "MISSED"), (1.9, "MISSED"), (2.1, "BELOW THE FLOOR")])
def test_goals_below_the_floor_are_distinguished(monkeypatch, floor, verdict):
    monkeypatch.syspath_prepend(BENCHMARKS)
    sides = importlib.import_module("sides")
    goal = sides.Goal(times=3, peer=sides.BEST)
    medians = {sides.OURS: 3.0, sides.PADDLE: 60.0, sides.TORCH: 6.0}
    assert goal.verdict(medians, floor) == f">= 3x the best peer: {verdict}"
    assert goal.verdict({**medians, sides.OURS: 2.0}, floor).endswith(": met")
    assert goal.verdict({sides.OURS: 3.0}, floor).endswith("(not measured)")


@pytest.mark.skipif(not IMAGES.is_dir(), reason="the documents are not here")
def test_the_chart_of_the_page_is_made_from_its_figures(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    chart, sides = (importlib.import_module(name) for name in ("chart", "sides"))
    figures = json.loads((IMAGES / "speed.json").read_text(encoding="utf8"))
    assert chart.draw(figures) == (IMAGES / "speed.svg").read_text(encoding="utf8"), "run benchmarks/chart.py"

    steps, _, eager = (
        (IMAGES.parent / "performance.md").read_text(encoding="utf8").partition("## Eager steps")
    )
    for column in figures["columns"].values():
        for row, (medians, _) in column.items():
            text = eager if row.startswith("eager: ") else steps
            line = next(
                line for line in text.splitlines() if line.startswith(f"| {row.removeprefix('eager: ')} |")
            )
            ratio = sides.ratio(medians[chart.best_peer(medians)], medians[sides.OURS])
            assert f"| {sides.figure(medians[sides.OURS])} |" in line and f"| {ratio} |" in line


def test_the_chart_leaves_out_rows_without_a_peer(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    chart = importlib.import_module("chart")
    rows = {
        "slow": [{"fluidlite": 4.0, "PyTorch": 2.0, "Paddle 3": 3.0}, None],
        "alone": [{"fluidlite": 1.0}, None],
    }
    drawn = chart.draw({"columns": {"best, 1": rows}})
    assert ">slow<" in drawn and ">0.5x<" in drawn and ">4<" in drawn and "Best peer: PyTorch<" in drawn
    assert "alone" not in drawn and "AVX2" not in drawn


def test_epochs_are_drawn(python, tmp_path):
    file = tmp_path / "epochs.svg"
    options = ["--no-peers", "--rounds", "1", *TINY["guide2"][:6], "--plot", file]
    done = python(BENCHMARKS / "guide2.py", *options)
    if importlib.util.find_spec("matplotlib") is None:
        assert done.returncode == 2 and "pip install matplotlib" in done.stderr
    else:
        assert done.returncode == 0, done.stdout + done.stderr
        assert "PTB (20)" in file.read_text(encoding="utf8")


def test_a_side_that_fails_is_reported_and_left_out(python, tmp_path):
    broken = tmp_path / "no_such_python"
    broken.write_text("#!/bin/sh\necho no framework here\nexit 3\n")
    broken.chmod(0o755)
    options = ["--paddle", broken, "--torch", broken, "--rounds", "1", "--seconds", "0.02"]
    done = python(BENCHMARKS / "overhead.py", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("no framework here") == 2 and "status 3" in done.stdout
    assert "Paddle" not in next(line for line in done.stdout.splitlines() if line.startswith("|"))


def test_losses_are_read(python):
    done = python(BENCHMARKS / "tutorial.py", "--check", "--no-peers", "--epochs", "1", "--mode", "iterable")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^iterable: 24 losses, from 2\.69\d+ to 0\.89\d+$", done.stdout, re.MULTILINE)
