"""The code blocks of Fluid's guides to reading data run unchanged under `python -m fluidlite`.

`scripts/` holds them: g1 from the guide to asynchronous reading, g3 from the reference of `paddle.reader`, g4
from the design of readers. Two changes only: files of arrays are opened in binary mode (the reference was
written for Python 2), and g4 defines what its guide leaves to the reader.
"""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCRIPTS = {path.stem: path for path in sorted((HERE / "scripts").glob("*.py"))}
EXAMPLES = HERE.parents[1] / "examples"


def lines(done):
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_block_runs(python, name):
    lines(python("-m", "fluidlite", SCRIPTS[name]))


@pytest.mark.parametrize(
    "name, expected",
    [
        ("g1_sources", ["3", "4", "100"]),
        ("g3_chain", [f"[{n}, {n}, {n}]" for n in (0, 1, 2, 10, 11, 12, 20, 21, 22)]),
        ("g3_firstn", ["0", "1", "2", "3", "4"]),
    ],
)
def test_block_prints(python, name, expected):
    assert lines(python("-m", "fluidlite", SCRIPTS[name])) == expected


def test_shuffle_prints_each_once(python):
    assert sorted(lines(python("-m", "fluidlite", SCRIPTS["g3_shuffle"]))) == ["0", "1", "2", "3", "4"]


def test_multiprocess_reader_drops_the_odd_sample(python):
    done = python("-m", "fluidlite", SCRIPTS["g3_multiprocess"])
    lines(done)
    # Two processes read 4 and 3 samples: three batches of 2, and the last sample is dropped.
    batches = re.findall(r"^\[\[\[ ?(\d+) +(\d+)\]\]\s+\[\[ ?(\d+) +(\d+)\]\]\]$", done.stdout, re.MULTILINE)
    assert len(batches) == 3
    seen = {number for batch in batches for number in map(int, batch)}
    assert len(seen) == 12 and seen < set(range(1, 15))


def losses(text):
    """The numbers in the lines `loss is [array([...], dtype=float32)]`."""
    return [
        float(found)
        for found in re.findall(r"^loss is \[array\(\[([-+.0-9e]+)\], dtype=float32\)\]$", text, re.MULTILINE)
    ]


@pytest.mark.parametrize("script", ["mnist_dataloader.py", "mnist_dataloader_noniterable.py"])
def test_training_example(python, script):
    done = python("-m", "fluidlite", EXAMPLES / script)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("a bundled part of it serves") == 1
    assert done.stderr.count("no usable GPU was found") <= 1
    found = losses(done.stdout)
    # Ten epochs of 10,000 digits to train and 2,000 to test, in batches of 512.
    assert len(found) == 10 * (20 + 4)
    assert found[0] > 1.5
    assert sum(found[-4:]) / 4 < 0.5
    assert done.stdout.count("End of epoch") == (20 if "noniterable" in script else 0)
