"""Python that scripts start by themselves."""

import os
import subprocess
import sys
from pathlib import Path

import fluidlite

from .ranks import environment, needs_mpi

ROOT = Path(fluidlite.__file__).parents[1]

STARTS = """
import subprocess, sys
subprocess.run([sys.executable, "-u", "child.py", "7"], check=True)
"""
CHILD = """
import sys
import numpy as np
import paddle
import paddle.fluid as fluid
from fluidlite.base import flags
print(paddle.__name__, fluid.__name__, paddle.batch.__module__.split(".")[0], flags.device(), sys.argv[1], np.float)
"""
LAUNCHER = """
import os, subprocess, sys
endpoints = ["127.0.0.1:6181", "127.0.0.1:6182"]
started = []
for rank, endpoint in enumerate(endpoints):
    own = {"PADDLE_TRAINER_ID": str(rank), "PADDLE_CURRENT_ENDPOINT": endpoint, "PADDLE_TRAINERS_NUM": "2",
           "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints)}
    started.append(subprocess.Popen([sys.executable, "-u", "trainer.py"], env=dict(os.environ, **own)))
sys.exit(max(process.wait() for process in started))
"""
TRAINER = """
import os
import numpy as np
import paddle.fluid as fluid
from paddle.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker
from paddle.fluid.incubate.fleet.collective import fleet
fleet.init(PaddleCloudRoleMaker(is_collective=True))
x = fluid.data("x", [None, 3])
loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr=fluid.ParamAttr("w", fluid.initializer.Constant(1.0))))
fleet.distributed_optimizer(fluid.optimizer.SGD(1.0)).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
exe.run(fleet.main_program, {"x": np.full((2, 3), 1.0 + fleet.worker_index(), "float32")}, [loss])
weight = np.array(fluid.global_scope().find_var("w").get_tensor())
open(f"w{fleet.worker_index()}", "w").write(str(weight.ravel().tolist()))
"""


def run(folder, *options, **more):
    return subprocess.run(
        [sys.executable, "-m", "fluidlite", *options, "parent.py"],
        cwd=folder,
        env=environment(PYTHONPATH=str(ROOT), **more),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_paddle_is_this_package_there_as_well(tmp_path):
    (tmp_path / "parent.py").write_text(STARTS)
    (tmp_path / "child.py").write_text(CHILD)
    done = run(tmp_path, "--device", "cpu")
    assert done.stdout == "fluidlite.paddle fluidlite fluidlite cpu 7 <class 'float'>\n", done.stderr


def test_strict_is_strict_there(tmp_path):
    (tmp_path / "parent.py").write_text(STARTS)
    (tmp_path / "child.py").write_text(CHILD)
    done = run(tmp_path, "--strict")
    assert done.returncode != 0
    assert "has no attribute 'float'" in done.stderr


def test_paddle_of_another_python_is_left_alone(tmp_path):
    other = tmp_path / "elsewhere" / "paddle"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("name = 'another one'\n")
    (tmp_path / "parent.py").write_text(
        "import os, subprocess, sys\n"
        "os.environ['PYTHONPATH'] += os.pathsep + 'elsewhere'\n"
        "code = 'import paddle, sys; print(paddle.name, len([p for p in sys.path if p.endswith(\"of_children\")]))'\n"
        "subprocess.run([sys.executable, '-c', code], env={**os.environ, 'FLUIDLITE_PYTHON': '/another'}, check=True)\n"
    )
    done = run(tmp_path)
    assert done.stdout == "another one 0\n", done.stderr


def test_the_path_of_the_parent_is_kept(tmp_path):
    (tmp_path / "parent.py").write_text("import os; print(os.environ['PYTHONPATH'])\n")
    folder, *rest = run(tmp_path).stdout.strip().split(os.pathsep)
    assert folder.endswith("of_children") and rest == [str(ROOT)]


@needs_mpi
def test_a_script_that_starts_two_that_train_together(tmp_path):
    (tmp_path / "parent.py").write_text(LAUNCHER)
    (tmp_path / "trainer.py").write_text(TRAINER)
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    # The gradient is the mean of the inputs: 1 of one, 2 of the other.
    assert [(tmp_path / f"w{rank}").read_text() for rank in (0, 1)] == ["[-0.5, -0.5, -0.5]"] * 2
