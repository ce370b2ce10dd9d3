"""`python -m fluidlite`: options, and scripts that run as the interpreter would run them."""

import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import fluidlite
from fluidlite import commands
from fluidlite.__main__ import main

COMMAND = ("-W", "error", "-m", "fluidlite")


@pytest.fixture
def script(tmp_path):
    def write(text, name="script.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def test_script_is_main_with_its_arguments(python, script):
    path = script(
        "import sys\n"
        "main = sys.modules['__main__']\n"
        "print(__name__, __file__ == sys.argv[0], sys.argv[1:], main.__dict__ is globals())\n"
        "import helper\n",
        "deep/script.py",
    )
    script("import paddle.fluid as fluid; print('helper', fluid.__name__)", "deep/helper.py")
    done = python(*COMMAND, path, "--device", "x", "-m")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "__main__ True ['--device', 'x', '-m'] True\nhelper fluidlite\n"
    assert done.stderr == ""


@pytest.mark.parametrize("packed", [False, True])
def test_directory_or_zip_with_a_main(python, tmp_path, packed):
    text = "import paddle, other; print(__name__, other.NAME, __spec__)"
    if packed:
        target = tmp_path / "app.zip"
        with zipfile.ZipFile(target, "w") as file:
            file.writestr("__main__.py", text)
            file.writestr("other.py", "NAME = 'other'")
    else:
        target = tmp_path / "app"
        target.mkdir()
        (target / "__main__.py").write_text(text)
        (target / "other.py").write_text("NAME = 'other'")
    done = python(*COMMAND, target)
    assert done.stdout == "__main__ other None\n", done.stderr


def test_code_and_standard_input(python):
    text = "import sys, paddle; print(sys.argv, sys.path[0] == '', paddle.__name__)"
    done = python(*COMMAND, "-c", text, "a", "-c")
    assert done.stdout == "['-c', 'a', '-c'] True fluidlite.paddle\n", done.stderr
    done = python(*COMMAND, "-", "b", text_in=text)
    assert done.stdout == "['-', 'b'] True fluidlite.paddle\n", done.stderr


def test_module(python, script):
    script("", "package/__init__.py")
    tool = script(
        "import sys, paddle; from . import __name__ as name; print(sys.argv, name, __spec__.name)",
        "package/tool.py",
    )
    done = python(*COMMAND, "-m", "package.tool", "a", "--version")
    assert done.stdout == f"['{tool}', 'a', '--version'] package package.tool\n", done.stderr
    script("print('main of', __package__)", "package/__main__.py")
    assert python(*COMMAND, "-m", "package").stdout == "main of package\n"
    done = python(*COMMAND, "-m", "no_such_module")
    assert done.returncode == 1
    assert "no module named no_such_module" in done.stderr


def test_exit_status_is_the_scripts(python):
    assert python(*COMMAND, "-c", "import sys; sys.exit(7)").returncode == 7
    assert python(*COMMAND, "-c", "raise SystemExit").returncode == 0
    done = python(*COMMAND, "-c", "raise SystemExit('enough')")
    assert (done.returncode, done.stderr) == (1, "enough\n")


def test_files_that_are_left_open_are_written(python, script, tmp_path):
    # What is put into a class here keeps the script's variables, and with them its files.
    path = script(
        "import paddle.fluid as fluid\n"
        "begin = fluid.Program.__init__\n"
        "def init(self): begin(self)\n"
        "fluid.Program.__init__ = init\n"
        "class Log:\n"
        "    def __init__(self): self.file = open('log.bin', 'wb')\n"
        "log = Log(); log.file.write(b'in an object')\n"
        "file = open('left.txt', 'w'); file.write('at the top')\n"
    )
    done = python(*COMMAND, path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "left.txt").read_text() == "at the top"
    assert (tmp_path / "log.bin").read_bytes() == b"in an object"


def test_what_is_loaded_before_a_script_is_no_rubbish_of_its_own(python):
    code = (
        "import gc, paddle.fluid\n"
        "assert gc.get_freeze_count() > len(gc.get_objects())\n"
        "class Ring:\n"
        "    def __init__(self): self.me = self\n"
        "    def __del__(self): print('gone')\n"
        "Ring()\n"
        "gc.collect()\n"
        "last = Ring()\n"
    )
    assert python("-m", "fluidlite", "-c", code).stdout == "gone\ngone\n"


def test_traceback_begins_in_the_script(python, script):
    path = script("def f():\n    return 1 / 0\n\nf()\n")
    done = python(*COMMAND, path)
    assert done.returncode == 1
    first, second = done.stderr.splitlines()[:2]
    assert first == "Traceback (most recent call last):"
    assert second == f'  File "{path}", line 4, in <module>'
    assert "fluidlite" not in done.stderr
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_syntax_error_has_no_traceback_of_ours(python, script):
    path = script("x = [\n")
    done = python(*COMMAND, path)
    assert done.returncode == 1
    assert done.stderr.startswith(f'  File "{path}", line 1')


def test_traceback_has_no_lines_of_what_is_put_back(python, script, tmp_path):
    path = script("import numpy as np\ntry:\n    np.array([[1], [1, 2]], 'f4')\nfinally:\n    import wrong\n")
    (tmp_path / "wrong.py").write_text("x = [\n")
    done = python(*COMMAND, path)
    lines = [line for line in done.stderr.splitlines() if line.startswith("  File")]
    assert lines == [
        f'  File "{path}", line 3, in <module>',
        f'  File "{path}", line 5, in <module>',
        f'  File "{tmp_path / "wrong.py"}", line 1',
    ]


def test_scripts_own_excepthook_is_used(python):
    done = python(
        *COMMAND, "-c", "import sys\nsys.excepthook = lambda *error: print('mine', error[0].__name__)\n1/0"
    )
    assert (done.returncode, done.stdout) == (1, "mine ZeroDivisionError\n")


def test_ctrl_c(tmp_path, script):
    # On one line, because the signal may come before the line after print has begun.
    path = script("import time, paddle\nprint('ready', flush=True); time.sleep(60)\n")
    root = str(Path(fluidlite.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, *COMMAND, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors == f"\ninterrupted at {path}:2\n"


@pytest.mark.parametrize(
    "args, message",
    [
        ((), "no script was given"),
        (("--device", "tpu", "x.py"), "got 'tpu'"),
        (("--device",), "--device needs an argument"),
        (("-m",), "-m needs an argument"),
        (("--fast", "x.py"), "unknown option --fast"),
        (("--no", "x"), "unknown option --no"),
        (("nothing.py",), "no script 'nothing.py'; try fluidlite --help"),
        (("exprot", "model"), "no script 'exprot'; did you mean 'export'? try fluidlite --help"),
        (("--strict", "draw"), "the command draw stands first"),
        (("export",), "fluidlite export: the following arguments are required: MODEL_DIR, MODEL.onnx; try"),
        (("export", "a", "b", "--fast"), "unrecognized arguments: --fast"),
        (("export", "nowhere", "b"), "There is no directory"),
        (("plot", "nowhere"), "nowhere"),
        (("launch", "x.py"), "how many processes"),
        (("profile", "x.py"), "x.py"),
        (("help", "exprot"), "no command 'exprot'; did you mean 'export'?"),
        (("completion", "cmd"), "invalid choice: 'cmd'"),
        ((".",), "the folder . has no __main__.py"),
    ],
)
def test_wrong_command_line(python, args, message):
    done = python(*COMMAND, *args)
    assert done.returncode == 2
    assert done.stderr.startswith("fluidlite") and message in done.stderr and done.stderr.count("\n") == 1


def test_help_and_version(python):
    for option in ("--version", "-V"):
        assert python(*COMMAND, option).stdout == f"fluidlite {fluidlite.__version__}\n"
    done = python(*COMMAND, "--help")
    assert done.returncode == 0
    assert "--device" in done.stdout and "FLUIDLITE_DATA" in done.stdout
    for name in commands.names():
        assert re.search(rf"^    {name} +\w", done.stdout, re.M)
    assert done.stdout == python(*COMMAND, "help").stdout


@pytest.mark.parametrize("name", [name for name in commands.names() if name != "help"])
def test_help_of_a_command(name, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    text = capsys.readouterr().out
    assert text.startswith(f"usage: fluidlite {name}") and main(["help", name]) == 0
    assert capsys.readouterr().out == text


def test_help_of_export_needs_no_onnx(python):
    code = "import sys; sys.modules['onnx'] = None; from fluidlite.__main__ import main; main(['export', '--help'])"
    done = python("-W", "error", "-c", code)
    assert done.returncode == 0 and "MODEL.onnx" in done.stdout, done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell, capsys, tmp_path):
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert "export" in text and ("--params" in text or "-l params" in text)
    if shell == "bash" and shutil.which("bash"):
        for words, wanted in (("fluidlite ex", "export"), ("fluidlite export --pa", "--params")):
            asked = f"{text}\nCOMP_WORDS=({words}); COMP_CWORD={words.count(' ')}; _fluidlite; echo ${{COMPREPLY[@]}}"
            done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
            assert done.stdout == wanted + "\n"


def test_device(python):
    code = "import paddle.fluid as fluid; print(fluid.cuda_places(0))"
    done = python("-m", "fluidlite", "--device=cpu", "-c", code)
    assert (done.stdout, done.stderr) == ("[CUDAPlace(0)]\n", "")
    done = python("-m", "fluidlite", "-c", code, env={"FLUIDLITE_REQUIRE_GPU": "0"})
    assert done.returncode == 0
    if "no usable GPU" in done.stderr:
        assert done.stderr.count("no usable GPU") == 1 and "--device gpu" in done.stderr
        done = python("-m", "fluidlite", "--device", "gpu", "-c", code)
        assert done.returncode == 1 and "RuntimeError" in done.stderr
