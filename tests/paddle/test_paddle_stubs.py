"""Type checkers know `import paddle.fluid as fluid`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "paddle_stubs.py"
pytestmark = pytest.mark.skipif(not (ROOT / "paddle-stubs").exists(), reason="needs the source tree")

USES = """\
import paddle
import paddle.fluid as fluid
from paddle.fluid.dygraph.nn import Conv2D

x = fluid.data("x", [None, 13])
y = fluid.layers.fc(x, 1, act="relu")
reveal_type(y)
reveal_type(paddle.batch)
reveal_type(Conv2D)
fluid.layers.embeding(x)
fluid.layers.fc(x, 1, activation="relu")
"""


def test_stubs_are_up_to_date(python):
    done = python(SCRIPT, "--check")
    assert done.returncode == 0, done.stderr


def test_a_type_checker_knows_fluid(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "uses.py").write_text(USES)
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--cache-dir", tmp_path, "uses.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    assert 'type is "fluidlite.framework.variable.Variable"' in lines[0], done.stdout
    assert "batch_size: int" in lines[1] and "fluidlite.fluid.dygraph.nn" in lines[2]
    assert 'no attribute "embeding"; maybe "embedding"' in lines[3] and 'argument "activation"' in lines[4]
