"""Cells in a real kernel: errors, magics, programs defined twice, interrupts, restarts, and what cells show."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

# Importing ipykernel would make this process look like a notebook.
pytestmark = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("nbclient", "ipykernel"))), reason="needs nbclient and ipykernel"
)

DRIVER = r"""
import json, queue, re, sys
from jupyter_client import KernelManager

manager = KernelManager(kernel_name="python3")
manager.start_kernel()
client = manager.client()
client.start_channels()
client.wait_for_ready(timeout=60)

def run(cell):
    # [kind, text] of each output; a cell that prints "interrupt me" is interrupted.
    message, found = client.execute(cell), []
    while True:
        each = client.get_iopub_msg(timeout=60)
        if each["parent_header"].get("msg_id") != message:
            continue
        kind, content = each["msg_type"], each["content"]
        if kind == "status" and content["execution_state"] == "idle":
            return found
        if kind == "stream":
            found.append([content["name"], content["text"]])
            if "interrupt me" in content["text"]:
                manager.interrupt_kernel()
        elif kind == "error":
            text = "\n".join(content["traceback"])
            found.append(["error", re.sub(r"\x1b\[[0-9;]*m", "", text)])
        elif kind in ("execute_result", "display_data"):
            found.append(["result", content["data"]["text/plain"]])
            if "text/html" in content["data"]:
                found.append(["html", content["data"]["text/html"]])

try:
    outputs = []
    for cell in json.load(sys.stdin):
        if cell == "restart":
            manager.restart_kernel(now=True)
            client.wait_for_ready(timeout=60)
            outputs.append([])
        else:
            outputs.append(run(cell))
    print(json.dumps(outputs))
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
"""

BEGIN = "import warnings\nimport fluidlite.as_paddle\nimport numpy as np\nimport paddle.fluid as fluid\n"
NET = """\
x = fluid.data("x", [None, 3])
loss = fluid.layers.mean(fluid.layers.fc(x, 1))
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
startup = exe.run(fluid.default_startup_program())
batch = {"x": np.ones((2, 3), "float32")}
"""
STEP = "len(exe.run(feed=batch, fetch_list=[loss]))"


@pytest.fixture
def run(python, tmp_path):
    """A function that runs cells in one kernel and returns the outputs of each."""

    def run(*cells):
        done = python("-c", DRIVER, text_in=json.dumps(cells), timeout=180, env={"HOME": str(tmp_path)})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_errors_magics_and_programs_that_are_defined_again(run, tmp_path):
    (tmp_path / "script.py").write_text(
        "def step():\n    exe.run(feed={'x': np.ones((2, 4), 'float32')})\nstep()\n"
    )
    wrong = "exe.run(feed={'x': np.ones((2, 4), 'float32')}, fetch_list=[loss])"
    outputs = run(
        BEGIN + NET,
        wrong,
        STEP,
        "%run -i script.py",
        STEP,
        f"%timeit -n 2 -r 1 {STEP}",
        f"%timeit -n 1 -r 1 {wrong}",
        NET,
        STEP,
        "fluid.layers.fc(x, 1, activation='relu')",
        "fluid.layers.reshape(fluid.layers.ones([7, 7], 'float32'), [5, -1])",
        "import paddle\npaddle.dataset.imdb.word_dict()",
        STEP,
    )
    assert outputs[0] == [] and outputs[7] == []
    assert [outputs[k] for k in (2, 4, 8, 12)] == [[["result", "1"]]] * 4
    assert "2 loops each" in outputs[5][0][1]
    for k, message in (
        (1, "The fed Variable 'x' .* axis 1 must have 3 elements, not 4 .declared at In.1., line 5"),
        (3, "The fed Variable 'x'"),
        (6, "The fed Variable 'x'"),
        (9, "did you mean 'act'"),
        (10, "EnforceNotMet: operator reshape2 .*built at In.11., line 1"),
        (11, "DownloadError: .*put the file at"),
    ):
        text = next(text for kind, text in outputs[k] if kind == "error")
        assert re.search(message, text) and "fluidlite/" not in text.partition("put the file")[0], text
        assert k in (3, 6) or len(text.splitlines()) <= 8, text  # magics have frames of their own


INTERRUPTED = """\
def read():
    while True:
        yield np.ones((2, 3), "float32"),
loader = fluid.io.DataLoader.from_generator([x], 4, use_multiprocess={processes})
loader.set_batch_generator(read, fluid.CPUPlace())
for number, data in enumerate(loader()):
    exe.run(feed=data, fetch_list=[loss])
    if number == 5:
        print("interrupt me", flush=True)
"""


@pytest.mark.parametrize("processes", [False, True])
def test_training_that_is_interrupted_goes_on(run, processes):
    outputs = run(
        BEGIN + NET,
        INTERRUPTED.format(processes=processes),
        "for number, data in zip(range(3), loader()):\n    exe.run(feed=data)\nnumber",
        "from fluidlite.reader import leaks\ndel data\nloader = None\nimport gc\ngc.collect()\nleaks()['threads']",
        "restart",
        BEGIN + NET + STEP,
    )
    text = next(text for kind, text in outputs[1] if kind == "error")
    assert "KeyboardInterrupt" in text and "fluidlite/" not in text, text
    assert outputs[2] == [["result", "2"]] and outputs[3] == [["result", "0"]]
    assert outputs[5] == [["result", "1"]]


SHOWN = {
    "exe": r"Executor\(CPUPlace\)",
    "fluid.io.DataLoader.from_generator([x], 4)": "<IterableLoader of 'x': capacity 4, idle, 0 epochs, 0 batches>",
    "fluid.ParamAttr(name='w', initializer=fluid.initializer.Constant(2.0))": (
        r"ParamAttr\(name='w', initializer=ConstantInitializer\(value=2.0\)\)"
    ),
    "fluid.Scope()": "<Scope of 0 variables>",
    "fluid.global_scope()": "<Scope of 3 variables: 'fc_0.w_0', 'fc_0.b_0', 'learning_rate_0'>",
    "fluid.optimizer.Adam(regularization=fluid.regularizer.L2Decay(0.1))": (
        r"AdamOptimizer\(learning_rate=0.001, "
        r"regularization=L2DecayRegularizer\(regularization_coeff=0.1\)\)"
    ),
    "x": r"Variable 'x': float32 \[None, 3\], fed",
    "fluid.default_main_program().all_parameters()[0]": r"Parameter 'fc_0.w_0': float32 \[3, 1\], persistable",
    "loader.summary()": r"1 epoch, 1 batch, 2 samples, 24 bytes\n +seconds(.|\n)*bottleneck: \w+\. .*",
    "exe.describe()": r"fed \['x'\], fetched \[.*(.|\n)*",
    "fluid.create_lod_tensor(np.ones((2, 1), 'float32'), [[1, 1]], fluid.CPUPlace())": (
        r"LoDTensor\(shape=\[2, 1\], dtype=float32, lod=\[\[0, 1, 2\]\],\n.*\n.*\)"
    ),
}


def test_what_cells_show(run):
    read = (
        "loader = fluid.io.DataLoader.from_generator([x], 4)\n"
        "_ = loader.set_batch_generator(lambda: [(batch['x'],)], fluid.CPUPlace())\n"
        "for data in loader():\n    exe.run(feed=data, fetch_list=[loss])\n"
    )
    outputs = run(BEGIN + NET + read, *SHOWN, "fluid.default_main_program()")
    for (cell, wanted), found in zip(SHOWN.items(), outputs[1:], strict=False):
        assert len(found) == 1 and re.fullmatch(wanted, found[0][1]), (cell, found)
    assert outputs[-1][1][0] == "html" and "<iframe" in outputs[-1][1][1]


@pytest.mark.skipif(
    not Path(__file__).parents[1].joinpath("examples").exists(), reason="needs the source tree"
)
def test_the_notebook_among_the_examples(run):
    path = Path(__file__).parents[1] / "examples" / "first_steps.ipynb"
    notebook = json.loads(path.read_text(encoding="utf8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(not cell.get("outputs") for cell in notebook["cells"])
    outputs = run(*cells)
    failed = [k for k, found in enumerate(outputs) if any(kind == "error" for kind, _ in found)]
    assert failed == [k for k, cell in enumerate(cells) if "# This fails" in cell]
    text = "\n".join(text for found in outputs for kind, text in found if kind != "html")
    assert (
        "axis 1 must have 13 elements, not 12" in text
        and "bottleneck:" in text
        and "Profiling Report" in text
    )
    assert any(kind == "html" for found in outputs for kind, _ in found)
