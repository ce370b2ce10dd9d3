"""What a user reads who made a mistake: short tracebacks, public names, warnings at his line."""

from __future__ import annotations

import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.errors import OperatorError
from fluidlite.base.reports import tracebacks
from fluidlite.executor.failures import NotFed

HEAD = "import numpy as np\nimport paddle, paddle.fluid as fluid\nx = fluid.data('x', [None, 3])\n"
NET = "loss = fluid.layers.mean(fluid.layers.fc(x, 1))\nexe = fluid.Executor(fluid.CPUPlace())\n"
NET += "exe.run(fluid.default_startup_program())\n"
WRONG_FEED = (
    NET + "def step():\n    exe.run(feed={'x': np.ones((2, 4), 'float32')}, fetch_list=[loss])\nstep()\n"
)
MISTAKES = {
    "feed": (
        WRONG_FEED,
        "ValueError: The fed Variable 'x' .* axis 1 must have 3 elements, not 4 .*script.py:3",
    ),
    "reshape": (
        "def net(x):\n    return fluid.layers.reshape(x, [5, -1])\nnet(fluid.layers.ones([7, 7], 'float32'))\n",
        "paddle.fluid.core.EnforceNotMet: operator reshape2",
    ),
    "reshape in a step": (
        "y = fluid.layers.reshape(x, [-1, 2])\nexe = fluid.Executor(fluid.CPUPlace())\n"
        "exe.run(feed={'x': np.ones((1, 3), 'float32')}, fetch_list=[y])\n",
        "paddle.fluid.core.EnforceNotMet: operator reshape2 .*script.py:4",
    ),
    "data set": (
        "def read():\n    return paddle.dataset.imdb.word_dict()\nread()\n",
        "fluidlite.DownloadError: .*Without a network, put the file at",
    ),
    "argument": (
        "fluid.layers.fc(x, 1, activation='relu')\n",
        "TypeError: fc.*'activation'; did you mean 'act'?",
    ),
    "fetch": (
        NET + "exe.run(feed={'x': np.ones((1, 3), 'float32')}, fetch_list=['los'])\n",
        "paddle.fluid.core.EnforceNotMet: .*It computes 'fc_0.tmp_0', .*No program was passed",
    ),
}


def failed(python, tmp_path, text, **env):
    path = tmp_path / "script.py"
    path.write_text(text)
    done = python("-m", "fluidlite", path, env=env)
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_is_shown_in_eight_lines(python, tmp_path, kind):
    text, message = MISTAKES[kind]
    lines = failed(python, tmp_path, HEAD + text).splitlines()
    assert len(lines) <= 8 and lines[0] == "Traceback (most recent call last):", lines
    assert {re.match('  File "(.*?)"', line)[1] for line in lines if line.startswith("  File")} == {
        str(tmp_path / "script.py")
    }
    assert any(re.match(message, line) for line in lines), lines


def test_full_tracebacks(python, tmp_path):
    text = failed(python, tmp_path, HEAD + WRONG_FEED, FLUIDLITE_TRACEBACK="full")
    assert "executor.py" in text and "script.py" in text and tracebacks.HINT not in text
    assert "FLUIDLITE_TRACEBACK must be" in failed(python, tmp_path, HEAD, FLUIDLITE_TRACEBACK="long")


def test_frames_of_the_users_code_stay(python, tmp_path):
    text = HEAD + (
        "def reader():\n    yield np.ones(3, 'float32'),\n    raise KeyError('mine')\n"
        "loader = fluid.io.DataLoader.from_generator([x], 2)\n"
        "loader.set_sample_generator(reader, 1, True, fluid.CPUPlace())\n"
        "for one in loader():\n    pass\n"
    )
    lines = failed(python, tmp_path, text).splitlines()
    assert [line.split(", ", 1)[1] for line in lines if line.startswith("  File")][-1] == "line 6, in reader"
    assert lines[-1] == "KeyError: 'mine'"


def test_what_may_be_a_fault_of_the_package_says_how_to_see_more(python, tmp_path):
    broken = "fluid.layers.fc.__globals__['LayerHelper'] = None\nfluid.layers.fc(x, 1)\n"
    text = failed(python, tmp_path, HEAD + broken)
    assert "TypeError: 'NoneType' object is not callable" in text and text.endswith(tracebacks.HINT + "\n")
    assert tracebacks.HINT not in failed(python, tmp_path, HEAD + WRONG_FEED)


def test_errors_of_worker_processes_show_the_users_lines_of_both_processes(python, tmp_path):
    text = HEAD + (
        "class Data(paddle.io.Dataset):\n    def __len__(self):\n        return 3\n"
        "    def __getitem__(self, index):\n        return {'a': 1}['b']\n"
        "for _ in paddle.io.DataLoader(Data(), num_workers=1):\n    pass\n"
    )
    lines = failed(python, tmp_path, text).splitlines()
    assert [line.split(", ", 1)[1] for line in lines if line.startswith("  File")] == [
        "line 8, in __getitem__",
        "line 9, in <module>",
    ]
    assert lines[-1] == "KeyError: 'b'"


def test_causes_that_say_more_stay():
    """Those that the error repeats, and that have no frame of the user's code, go."""
    error, same, other = ValueError("no: because"), OSError("because"), OSError("something else")
    error.__cause__, same.__cause__ = same, other
    error.__traceback__ = same.__traceback__ = None
    try:
        fluid.layers.fc(None, 1)
    except TypeError as raised:
        error.__traceback__ = raised.__traceback__.tb_next  # only frames of the package
    assert not tracebacks.shorten(error, full=False)  # the cause says whose fault it is
    assert error.__traceback__ is None and error.__cause__ is other


def test_errors_have_public_names():
    for name in (
        "LoaderError",
        "DownloadError",
        "NotSupportedError",
        "WorkerDied",
        "RpcError",
        "OldNameWarning",
    ):
        cls = getattr(fluid, name)
        assert f"{cls.__module__}.{cls.__qualname__}" == f"fluidlite.{name}" and name not in dir(fluid)
    for cls in (fluid.core.EnforceNotMet, fluid.core.EOFException, OperatorError, NotFed):
        assert cls.__module__ in ("fluidlite.core", "paddle.fluid.core")
        assert getattr(fluid.core, cls.__qualname__) in cls.__mro__


@pytest.mark.parametrize(
    "error",
    [NotFed("here", "x", ["y"]), fluid.core.EOFException("end"), OperatorError("no"), fluid.LoaderError("a")],
)
def test_errors_can_be_pickled(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error) and str(copy) == str(error) and vars(copy) == vars(error)


def test_dir_shows_names_of_fluid():
    hidden = {"base", "ops", "backend", "_ext", "missing", "eager", "tracebacks"}
    assert not hidden & set(dir(fluid)) and set(fluid.__all__) <= set(dir(fluid))


@pytest.fixture
def net(alone):
    x = fluid.data("x", [None, 3])
    loss = fluid.layers.mean(fluid.layers.fc(x, 1))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe, x, loss


def test_conditions_on_variables(net):
    _, x, loss = net
    with pytest.warns(UserWarning, match=r"use fluid.layers.cond") as caught:
        assert loss > 3
    assert caught[0].filename == __file__ and len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x and x is not None


def test_names_in_the_feed_that_the_program_does_not_have(net):
    exe, _, loss = net
    feed = {"x": np.ones((2, 3), "float32"), "xx": np.ones(1)}
    with pytest.warns(UserWarning, match="variable xx is not found in program.*did you mean 'x'") as caught:
        for _ in range(3):
            exe.run(feed=feed, fetch_list=[loss])
    assert len(caught) == 1 and caught[0].filename == __file__


@pytest.mark.parametrize("parallel", [False, True])
def test_compiled_programs_refuse_them(net, parallel):
    exe, _, loss = net
    program = fluid.CompiledProgram(fluid.default_main_program())
    if parallel:
        program = program.with_data_parallel(places=fluid.cpu_places(2))
    with pytest.raises(ValueError, match="^var xx not in this block.*did you mean 'x'"):
        exe.run(program, feed={"x": np.ones((2, 3), "float32"), "xx": np.ones(2)}, fetch_list=[loss])


@pytest.mark.parametrize("value", [1.0, np.float32(1), np.ones(3, "float32")])
@pytest.mark.parametrize("declare", [fluid.data, fluid.layers.data])
def test_feeds_of_another_rank(alone, value, declare):
    x = declare("x", [-1, 3])
    loss = fluid.layers.mean(fluid.layers.fc(x, 1))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    message = (
        rf"^The fed Variable 'x' .*fed shape \[\d\] \(declared at {re.escape(__file__)}:\d+\): operator mul"
    )
    for _ in range(2):
        with pytest.raises(fluid.core.EnforceNotMet, match=message):
            exe.run(feed={"x": value}, fetch_list=[loss])


def test_feeds_with_fewer_dimensions_may_fit(alone):
    x = fluid.data("x", [None, 1])
    (found,) = fluid.Executor(fluid.CPUPlace()).run(feed={"x": np.ones(2, "float32")}, fetch_list=[x + 1.0])
    assert found.tolist() == [2, 2]


def test_what_a_program_can_fetch(net):
    exe, _, loss = net
    with pytest.raises(fluid.core.EnforceNotMet, match=f"computes .*'{loss.name}'") as caught:
        exe.run(fluid.default_main_program(), feed={"x": np.ones((2, 3), "float32")}, fetch_list=["lss"])
    assert "No program was passed" not in str(caught.value)
    other = fluid.Program()
    with (
        fluid.program_guard(other),
        pytest.raises(fluid.core.EnforceNotMet, match=r"computes nothing\. No program"),
    ):
        exe.run(fetch_list=[loss])


def test_end_of_an_epoch_says_what_to_do(alone):
    x = fluid.data("x", [None, 3])
    loader = fluid.io.DataLoader.from_generator([x], 2, iterable=False)
    loader.set_batch_generator(lambda: iter([(np.ones((2, 3), "float32"),)]))
    exe = fluid.Executor(fluid.CPUPlace())
    loader.start()
    exe.run(fetch_list=[x])
    with pytest.raises(fluid.core.EOFException, match=r"^There is no next data\. Catch .* reset\(\)"):
        exe.run(fetch_list=[x])
    loader.reset()


@pytest.mark.parametrize(
    "declare, shape",
    [
        (lambda: fluid.data("x", [-1, 3]), [-1, 3]),
        (lambda: fluid.layers.data("x", [-1, 3]), [-1, 3]),
        (lambda: fluid.layers.create_tensor("float32", name="x", persistable=True), []),
    ],
)
def test_data_in_dygraph_mode_has_no_value(declare, shape):
    with fluid.dygraph.guard():
        x = declare()
        assert (
            x.shape == shape
            and x.dtype == fluid.core.VarDesc.VarType.FP32
            and x.name == "x"
            and "not inited" in str(x)
        )
        linear = fluid.dygraph.Linear(3, 1)
        for use in (
            x.numpy,
            lambda: x + 1,
            lambda: linear(x),
            lambda: fluid.layers.concat([x, x]),
            lambda: x[0],
        ):
            with pytest.raises(fluid.core.EnforceNotMet, match="'x' has no value.*to_variable"):
                use()
        fluid.layers.assign(np.ones((2, 3), "float32"), output=x)
        assert x.numpy().sum() == 6 and (x + 1).numpy().sum() == 12


def test_warnings_are_short_and_at_the_users_line(python, tmp_path):
    path = tmp_path / "script.py"
    path.write_text(
        "import numpy as np\nimport paddle, paddle.fluid as fluid\n"
        "for _ in range(2):\n    fluid.Executor(fluid.CUDAPlace(0))\n"
        "for _ in paddle.dataset.mnist.test()():\n    break\n"
        "a = np.float(1)\nb = np.float(2)\nc = np.int(3)\n"
    )
    env = {"CUDA_VISIBLE_DEVICES": "", "HOME": str(tmp_path)}
    lines = python("-m", "fluidlite", path, env=env).stderr.splitlines()
    at = [re.match(rf"{re.escape(str(path))}:(\d+): \w+Warning: ", line) for line in lines[::2]]
    assert [int(found[1]) for found in at] == [4, 5, 7, 9], lines
    assert all(len(line) - len(str(path)) < 200 for line in lines)
    assert Path(path).read_text().splitlines()[3].strip() == lines[1].strip()
