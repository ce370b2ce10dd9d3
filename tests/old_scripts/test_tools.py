"""Notebooks and debuggers beside the rewriting of the user's code."""

import pytest

NOTEBOOK = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30,) * 2)  # a walk that goes round takes all memory
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="nocolor")
for number, cell in enumerate(eval(sys.stdin.read())):
    done = shell.run_cell(cell)
    error = done.error_before_exec or done.error_in_exec
    print("=>", number, type(error).__name__ if error else done.result)
"""

DECIDES = """
from paddle.fluid.dygraph.jit import declarative
@declarative
def decides(x):
    if fluid.layers.reduce_sum(x) > 0:
        x = x + int(np.ones(1))
    return x
with fluid.dygraph.guard():
    found = decides(fluid.dygraph.to_variable(np.ones(1, 'float32')))
float(found.numpy())
"""

CELLS = [
    ("import fluidlite.as_paddle\nimport numpy as np\nimport paddle.fluid as fluid", None),
    ("import warnings\nwarnings.simplefilter('ignore')", None),
    ("[1][3]", "IndexError"),  # whose traceback has parents attached to the nodes of its tree
    ("x = [1]\nx[3]", "IndexError"),
    ("float(np.ones(1)) + len('ab')", 3.0),
    ("def f(x):\n    return float(x)\nf(np.ones(1))", 1.0),
    ("%reset -f\nimport numpy as np, mine, paddle.fluid as fluid", None),
    ("mine.f(np.ones((1, 1)))", 1.0),
    ("%time float(np.ones(1))", 1.0),
    ("[name for name in globals() if 'fluidlite' in name and name[:2] != '__']", []),
    ("(3).tostring()", "AttributeError"),
    ("float('abc')", "ValueError"),
    (DECIDES, 2.0),
    ("import numba", None),  # which compiles bytecode: cells after this one are not rewritten
    ("float(np.ones(1))", "TypeError"),
]


def test_cells_of_a_notebook(python, tmp_path):
    """Also after an error, whose traceback leaves notes in syntax trees."""
    pytest.importorskip("IPython")
    (tmp_path / "mine.py").write_text("def f(x):\n    return float(x)\n")
    (tmp_path / "numba.py").touch()
    cells = [text for text, _ in CELLS]
    done = python(
        "-W", "ignore", "-c", NOTEBOOK, text_in=repr(cells), timeout=60, env={"HOME": str(tmp_path)}
    )
    values = [line.split(maxsplit=2)[2] for line in done.stdout.splitlines() if line.startswith("=> ")]
    assert values == [str(value) for _, value in CELLS], done.stdout + done.stderr
    assert "old_scripts" not in done.stdout  # in tracebacks


SCRIPT = """\
import sys
import numpy as np
x = float(np.full(1, 2.0))
print(sys.argv[1:], x)
x / 0
"""


def test_python_m_pdb(python, tmp_path):
    """It stops where an error was raised, and starts over with the same arguments."""
    (tmp_path / "script.py").write_text(SCRIPT)
    commands = "b script.py:4\nc\np x + 1\nc\np x + 2\nc\nc\np x + 3\nq\n"
    done = python("-W", "ignore", "-m", "pdb", "-m", "fluidlite", "script.py", "a", text_in=commands)
    shown = [line.removeprefix("(Pdb) ") for line in done.stdout.splitlines()]
    numbers = [line for line in shown if line in ("3.0", "4.0", "5.0", "['a'] 2.0")]
    assert numbers == ["3.0", "['a'] 2.0", "4.0", "5.0"], done.stdout + done.stderr
    assert "Entering post mortem debugging" in done.stdout and "script.py(5)<module>()" in done.stdout


def test_python_i(python, tmp_path):
    """The prompt is in the script, with the error that ended it."""
    (tmp_path / "script.py").write_text(SCRIPT)
    commands = "x + 1\nimport traceback\n[one.lineno for one in traceback.extract_tb(sys.last_traceback)]\n"
    done = python("-W", "ignore", "-i", "-m", "fluidlite", "script.py", text_in=commands)
    assert done.stdout == "[] 2.0\n3.0\n[5]\n" and "SystemExit" not in done.stderr, done.stdout + done.stderr


def test_ipython_that_the_command_starts(python, tmp_path):
    """Cells are rewritten from the first import of paddle on."""
    pytest.importorskip("IPython")
    cells = "import paddle.fluid\nimport numpy as np\nnp.zeros(1)[2]\nfloat(np.ones(1)) + np.float(2)\n"
    command = ("-W", "ignore", "-m", "fluidlite", "-m", "IPython", "--simple-prompt", "--colors=NoColor")
    done = python(*command, text_in=cells, timeout=60, env={"HOME": str(tmp_path)})
    assert "IndexError" in done.stdout and "Out[4]: 3.0" in done.stdout, done.stdout + done.stderr
