"""The code blocks of Fluid's guides to reading data run unchanged under `python -m fluidlite`.

`scripts/` holds them: g1 from the guide to asynchronous reading, g2 from that to reading in dygraph mode, g3 from
the reference of `paddle.reader`, g4 from the design of readers, g5 from the text on asynchronous reading in Paddle
2.0. Three changes only: files of arrays are opened in binary mode (the reference was written for Python 2), g4
defines what its guide leaves to the reader, and the last line of g2_train clears the gradients of its model (the
guide names one that is not there).
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fluidlite.paddle as paddle

HERE = Path(__file__).parent
SCRIPTS = {path.stem: path for path in sorted((HERE / "scripts").glob("*.py"))}
EXAMPLES = HERE.parents[1] / "examples"
WITH_RESULTS = {
    "g1_sources", "g2_sources", "g2_train", "g3_chain", "g3_firstn", "g3_multiprocess", "g3_shuffle", "g5_train",
}  # fmt: skip
"""What other tests run, and look at what it prints."""


def lines(done):
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def edited(name, folder, old, new):
    """A copy of a script in `folder`, with every `old` replaced; returns its path."""
    text = SCRIPTS[name].read_text(encoding="utf8")
    assert old in text
    path = folder / f"{name}.py"
    path.write_text(text.replace(old, new), encoding="utf8")
    return path


@pytest.mark.parametrize("name", sorted(set(SCRIPTS) - WITH_RESULTS))
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


@pytest.mark.parametrize("multiprocess", [False, True])
def test_dygraph_training_takes_every_batch(python, tmp_path, multiprocess):
    path = edited("g2_train", tmp_path, "capacity=10", f"capacity=10, use_multiprocess={multiprocess}")
    counting = "adam.minimize(avg_loss); print(image.shape, label.shape, avg_loss.numpy().dtype)"
    text = path.read_text(encoding="utf8")
    assert text.count("adam.minimize(avg_loss)") == 1
    path.write_text(text.replace("adam.minimize(avg_loss)", counting), encoding="utf8")
    done = python("-m", "fluidlite", path)
    assert lines(done) == ["[16, 784] [16, 1] float32"] * 10
    assert done.stderr == ""


@pytest.mark.parametrize("multiprocess", [False, True])
def test_dygraph_sources_can_be_read(python, tmp_path, multiprocess):
    path = edited("g2_sources", tmp_path, "capacity=10", f"capacity=10, use_multiprocess={multiprocess}")
    with path.open("a", encoding="utf8") as file:
        # Still in dygraph mode, as part of the block's `with`.
        file.write("\n    for loader in (data_loader1, data_loader2, data_loader3):\n")
        file.write("        print([image.shape for image, label in loader()])\n")
    # 160 samples in batches of 32, and ten batches of 16.
    expected = [[[32, 784]] * 5, [[16, 784]] * 10, [[16, 784]] * 10]
    assert lines(python("-m", "fluidlite", path)) == [str(shapes) for shapes in expected]


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """The file of digits that the text on Paddle 2.0 reads."""
    file = tmp_path_factory.mktemp("digits") / "mnist.json.gz"
    script = HERE.parents[1] / "scripts" / "make_mnist_json.py"
    root = str(Path(paddle.__file__).parents[2])
    subprocess.run([sys.executable, script, file, "2400"], check=True, env={**os.environ, "PYTHONPATH": root})
    return file


@pytest.mark.parametrize("workers", [0, 1])
def test_training_from_a_dataset(python, tmp_path, digits, workers):
    (tmp_path / digits.name).symlink_to(digits)
    script = edited("g5_train", tmp_path, "shuffle=True", f"shuffle=True, num_workers={workers}")
    script.write_text(
        "import numpy\nimport paddle\nnumpy.random.seed(1)\npaddle.seed(1)\n" + script.read_text()
    )
    printed = lines(python("-m", "fluidlite", script))
    assert printed[:3] == [f"{i} [100, 784] [100]" for i in range(3)]
    pattern = r"epoch: (\d+), batch: 0, loss is: \[?([.\d]+)\]?"
    found = [re.fullmatch(pattern, line).groups() for line in printed[3:]]
    assert [int(epoch) for epoch, _ in found] == list(range(10))
    first, *later = [float(loss) for _, loss in found]
    # [100, 1] - [100] is [100, 100]: all that can be learned is the mean of the labels, whose variance is about 8.
    assert first > 15
    assert all(6 < loss < 13 for loss in later)
    assert 7.5 < sum(later) / len(later) < 10.5
    saved = paddle.load(str(tmp_path / "mnist"))
    assert {name: value.shape for name, value in saved.items()} == {"fc.weight": [784, 1], "fc.bias": [1]}


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
    assert done.stderr.count("a bundled part of it is used") == 1
    assert done.stderr.count("no usable GPU was found") <= 1
    found = losses(done.stdout)
    # Ten epochs of 10,000 digits to train and 2,000 to test, in batches of 512.
    assert len(found) == 10 * (20 + 4)
    assert found[0] > 1.5
    assert sum(found[-4:]) / 4 < 0.5
    assert done.stdout.count("End of epoch") == (20 if "noniterable" in script else 0)
