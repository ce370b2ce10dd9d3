"""The examples run and learn something; those of the guide are in `guides/test_guides.py`."""

import re
from pathlib import Path

import pytest

from .rpc.ports import free_port

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_fit_a_line(python):
    done = python("-m", "fluidlite", EXAMPLES / "fit_a_line.py", 2)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"epoch 1, loss (\S+)", done.stdout)[1]) < 0.001
    assert "bias 4.20, true one 4.2" in done.stdout and done.stderr == ""


def test_demo_reaches_what_paddle_reaches(python):
    done = python(
        "-m", "fluidlite", EXAMPLES / "demo.py", env={"FLUIDLITE_DATA": "", "FLUIDLITE_OFFLINE": "1"}
    )
    assert done.returncode == 0, done.stderr
    ours, real = re.findall(
        r"loss (\S+), accuracy (?:on test digits )?(\S+?),?(?= |$)", done.stdout, re.MULTILINE
    )[-2:]
    assert ours == real and "bottleneck:" in done.stdout, done.stdout


def test_curves(python, tmp_path):
    pytest.importorskip("tensorboardX")
    done = python("-m", "fluidlite", EXAMPLES / "curves.py", tmp_path, 20)
    assert done.returncode == 0, done.stderr
    plotted = python("-m", "fluidlite", "plot", tmp_path)
    assert plotted.returncode == 0, plotted.stderr
    page = (tmp_path / "curves.html").read_text()
    assert "train/loss" in page and "rate=0.01" in page and "rate=0.1" in page


def test_lenet(python):
    done = python("-m", "fluidlite", EXAMPLES / "lenet.py", 1, 8)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"accuracy on test digits (\S+)", done.stdout)[1]) > 0.3
    assert "(the same)" in done.stdout


def test_gpu_lenet(python):
    done = python("-m", "fluidlite", EXAMPLES / "gpu_lenet.py", 1, 21)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"step 20: loss \S+ accuracy (\S+)", done.stdout)[1]) > 0.3
    assert "what a step is made of:\nfed ['image', 'label']" in done.stdout and "bottleneck:" in done.stdout


def test_dygraph_lenet(python):
    done = python("-m", "fluidlite", EXAMPLES / "dygraph_lenet.py", 1, 12)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"test accuracy (\S+)", done.stdout)
    assert len(found) == 2 and found[0] == found[1] and float(found[0]) > 0.3, done.stdout


def test_paddle2_mlp(python):
    done = python("-m", "fluidlite", EXAMPLES / "paddle2_mlp.py", 1, 1500)
    assert done.returncode == 0, done.stderr
    found = [float(text) for text in re.findall(r"test accuracy (\S+)", done.stdout)]
    assert len(found) == 2 and min(found) > 0.5, done.stdout


def test_dynamic_rnn(python):
    done = python("-m", "fluidlite", EXAMPLES / "dynamic_rnn.py", 250)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"accuracy on new sentences (\S+)", done.stdout)[1]) > 0.75, done.stdout


def test_crf_tagger(python):
    done = python("-m", "fluidlite", EXAMPLES / "crf_tagger.py", 100)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"F1 of chunks (\S+)", done.stdout)[1]) > 0.95, done.stdout
    assert re.search(r"/B-who .*/B-verb .*/B-whom", done.stdout), done.stdout


def test_ctc(python):
    done = python("-m", "fluidlite", EXAMPLES / "ctc.py", 100)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"edit distance per sign (\S+)", done.stdout)[1]) < 0.05, done.stdout


def test_declarative_loop(python):
    done = python("-m", "fluidlite", EXAMPLES / "declarative_loop.py")
    assert "[9, 1, 4] -> [[8, 7, 6, 5, 4, 3, 2, 1, 0], [0, 0, " in done.stdout
    assert "from the file: [6, 1, 4] -> [[5, 4, 3, 2, 1, 0], [0, " in done.stdout


def test_sentiment_lstm(python):
    done = python("-m", "fluidlite", EXAMPLES / "sentiment_lstm.py", 120)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"accuracy on new reviews (\S+)", done.stdout)[1]) > 0.8, done.stdout


def test_translate(python):
    done = python("-m", "fluidlite", EXAMPLES / "translate.py", 120)
    assert done.returncode == 0, done.stderr
    assert int(re.search(r"(\d+) of 200 rows turned around", done.stdout)[1]) > 100, done.stdout


def test_while_loop(python):
    done = python("-m", "fluidlite", EXAMPLES / "while_loop.py")
    assert done.returncode == 0, done.stderr
    assert "at 5% there is 2.079 times as much after 15 years" in done.stdout
    assert "at 0.0718; it should be 0.0718" in done.stdout, done.stdout


def test_mixed_precision(python):
    done = python("-m", "fluidlite", EXAMPLES / "mixed_precision.py", 150)
    assert done.returncode == 0, done.stderr
    assert "15 casts between float32 and float16\nstep 0: loss" in done.stdout
    assert float(re.search(r"recognised (\S+) of new pictures", done.stdout)[1]) > 0.8, done.stdout


def test_quantization_aware(python):
    done = python("-m", "fluidlite", EXAMPLES / "quantization_aware.py", 200)
    assert done.returncode == 0, done.stderr
    rounded, frozen = re.search(r"recognised (\S+) with rounding, (\S+) with integers", done.stdout).groups()
    assert rounded == frozen and float(frozen) > 0.9, done.stdout


def test_all_examples_are_run_by_tests():
    here = Path(__file__)
    tests = here.read_text() + (here.parent / "guides" / "test_guides.py").read_text()
    for path in EXAMPLES.glob("*.py"):
        assert path.name in tests


def test_ctr_from_files(python):
    done = python("-m", "fluidlite", EXAMPLES / "ctr_from_files.py", 3000)
    assert done.returncode == 0, done.stderr
    assert "3000 samples in memory" in done.stdout
    assert float(re.search(r"accuracy on new samples (\S+)", done.stdout)[1]) > 0.75, done.stdout


def test_distributed(python):
    """In one process; `distributed/` runs such scripts in two."""
    folder = EXAMPLES / "distributed"
    done = python("-m", "fluidlite", folder / "fleet_digits.py", 30)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"accuracy of all 1 workers (\S+)", done.stdout)[1]) > 0.5
    done = python("-m", "fluidlite", folder / "transpiled_regression.py")
    assert float(re.search(r"loss (\S+),", done.stdout)[1]) < 0.01, done.stderr
    done = python("-m", "fluidlite", folder / "dygraph_digits.py", 30)
    assert float(re.search(r"accuracy (\S+)", done.stdout)[1]) > 0.4, done.stderr
    done = python("-m", "fluidlite", folder / "paddle2_spawn.py", 1)
    assert float(re.search(r"mean loss of 1 processes (\S+)", done.stdout)[1]) < 0.01, done.stderr


def test_served_clicks(python):
    pytest.importorskip("grpc", reason="parameter servers need grpcio")
    options = ["--rows", 2000, "--steps", 8, "--batch", 64]
    endpoints = ",".join(f"127.0.0.1:{free_port()}" for _ in range(2))
    script = EXAMPLES / "distributed" / "served_clicks.py"
    done = python(
        "-m", "fluidlite", "-m", "paddle.distributed.launch_ps", "--endpoints", endpoints, script, *options
    )
    assert done.returncode == 0, done.stderr
    said = re.findall(r"(worker|server) (\d): (loss|\d+ MB at most)", done.stdout)
    assert sorted((kind, number) for kind, number, _ in said) == [
        (kind, number) for kind in ("server", "worker") for number in "01"
    ]
