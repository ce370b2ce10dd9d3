"""Programs are drawn: what stands on the page, from models, scripts and notebooks, and in a browser."""

import html
import json
import re
import subprocess
import sys

import pytest

import fluidlite as fluid
from fluidlite.__main__ import main
from fluidlite.framework import drawing

from .browser import drawn, needs_browser


def _data(page):
    return json.loads(re.search(r"const data = (.*);\n", page)[1])


def _trained():
    program, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(program, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 4], "float32")
        loss = fluid.layers.mean(fluid.layers.fc(x, 3, act="tanh"))
        fluid.optimizer.Adam(0.1).minimize(loss)
    return program, startup, x, loss


def _looping():
    program = fluid.Program()
    with fluid.program_guard(program), fluid.unique_name.guard():
        i = fluid.layers.fill_constant([1], "int64", 0)
        fluid.layers.while_loop(
            lambda i: fluid.layers.less_than(i, fluid.layers.fill_constant([1], "int64", 3)),
            lambda i: [fluid.layers.increment(i)],
            [i],
        )
    return program


def test_the_page_tells_operators_shapes_and_parts():
    program, *_ = _trained()
    (block,) = _data(drawing.page(program, "t"))["blocks"]
    ops = {op["type"]: op for op in block["ops"]}
    assert [op["type"] for op in block["ops"]] == [op.type for op in program.global_block().ops]
    assert (ops["mul"]["part"], ops["mul_grad"]["part"], ops["adam"]["part"]) == (
        "forward",
        "backward",
        "update",
    )
    assert ops["mul"]["inputs"] == {"X": ["x"], "Y": ["fc_0.w_0"]}
    assert ops["mul"]["attrs"]["x_num_col_dims"] == "1"
    assert "test_draw.py" in ops["mul"]["where"]
    assert block["vars"]["fc_0.w_0"] == {
        "shape": [4, 3],
        "dtype": "float32",
        "width": 4,
        "lod": 0,
        "kept": True,
    }
    assert block["vars"]["x"]["shape"] == [-1, 4]


def test_blocks_belong_to_their_operators():
    blocks = _data(drawing.page(_looping(), "t"))["blocks"]
    (loop,) = [op for op in blocks[0]["ops"] if op["type"] == "while"]
    assert loop["blocks"] == [1] and blocks[1]["parent"] == 0
    assert "increment" in [op["type"] for op in blocks[1]["ops"]]


def test_no_text_ends_the_script():
    """Names and titles from files stand in the page as data only, in a notebook as well."""
    program = fluid.Program()
    program.global_block().create_var(
        name="</script><img src=x onerror=alert(1)>", shape=[1], dtype="float32"
    )
    page = drawing.page(program, "<b>")
    assert page.count("</script>") == 1 and "<img" not in page
    frame = program._repr_html_()
    assert frame.count("<") == 2 and html.unescape(frame).count("const data = ") == 1


def test_models_and_scripts_are_drawn(tmp_path, monkeypatch, capsys):
    """A folder, its file, and a script, whose training does not begin."""
    program, startup, x, loss = _trained()
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        fluid.io.save_inference_model(str(tmp_path / "model"), ["x"], [loss], exe, program)
    (tmp_path / "train.py").write_text(
        "import sys\n"
        "import paddle.fluid as fluid\n"
        "x = fluid.data('x', [None, int(sys.argv[1])], 'float32')\n"
        "y = fluid.layers.fc(x, 2)\n"
        "exe = fluid.Executor(fluid.CPUPlace())\n"
        "exe.run(fluid.default_startup_program())\n"
        "exe.run(feed={'x': None}, fetch_list=[y])\n"
    )
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-m", "fluidlite", "draw", "train.py", "4"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "2 operators in 1 block: train.html\n", done.stderr
    for given, name in (["model"], "model"), (["-o", "file.html", "model/__model__"], "file"):
        assert main(["draw", *given]) == 0
        types = [op["type"] for op in _data((tmp_path / f"{name}.html").read_text())["blocks"][0]["ops"]]
        assert types[1:3] == ["mul", "elementwise_add"], given
    assert "in 1 block: file.html" in capsys.readouterr().out


def test_what_cannot_be_drawn_is_said(tmp_path, monkeypatch, capsys):
    """Nothing there, a damaged model, a folder without one: status 2 and a line that names it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad").write_bytes(b"\xff" * 40)
    assert main(["draw", "empty", "more"]) == 2
    assert "takes no arguments" in capsys.readouterr().err
    for name, said in (
        ("none.py", "no script none.py"),
        ("empty", "neither"),
        ("bad", "bad is not a ProgramDesc"),
    ):
        assert main(["draw", name]) == 2
        assert said in capsys.readouterr().err
    assert not list(tmp_path.glob("*.html"))


@needs_browser
@pytest.mark.parametrize("make", [lambda: _trained()[0], _looping])
def test_a_browser_draws_the_graph(tmp_path, make):
    """Each operator of the forward part is a node, each edge ends at nodes, and the script does not fail."""
    program = make()
    page = tmp_path / "page.html"
    page.write_text(drawing.page(program, "t"))
    dom = drawn(page)
    forward = [op for op in program.global_block().ops if not int(op.attrs.get("op_role", 0)) & 3]
    assert len(re.findall(r'<g class="node forward"', dom)) == len(forward)
    assert "NaN" not in dom and "undefined" not in dom.split("<script>")[0]


def _along(path):
    """Points of a path of curves and vertical lines."""
    x, y = map(float, re.match(r"M(\S+) ([^CV]+)", path).groups())
    for kind, text in re.findall(r"([CV])([^CV]+)", path):
        numbers = [float(number) for number in text.split()]
        (x1, y1), (x2, y2), (x3, y3) = (
            zip(*[iter(numbers)] * 2, strict=True) if kind == "C" else [(x, numbers[0])] * 3
        )
        for part in (k / 20 for k in range(1, 21)):
            back = 1 - part
            yield tuple(
                back**3 * a + 3 * back**2 * part * b + 3 * back * part**2 * c + part**3 * d
                for a, b, c, d in ((x, x1, x2, x3), (y, y1, y2, y3))
            )
        x, y = x3, y3


@needs_browser
def test_edges_bypass_the_nodes_between(tmp_path):
    """An edge to a reader far below passes beside all nodes in between."""
    program = fluid.Program()
    with fluid.program_guard(program), fluid.unique_name.guard():
        x = y = fluid.data("x", [None, 4], "float32")
        for _ in range(6):
            y = fluid.layers.relu(y)
        near = fluid.layers.tanh(x)
        fluid.layers.sums([x, y, near, fluid.layers.scale(near, 2.0)])
    page = tmp_path / "page.html"
    page.write_text(drawing.page(program, "t"))
    dom = drawn(page)
    nodes = re.findall(
        r'<g class="node \w+" tabindex="0" transform="translate\((\S+) (\S+)\)"><rect width="(\S+)" height="(\S+)"',
        dom,
    )
    boxes = [tuple(map(float, numbers)) for numbers in nodes]
    paths = re.findall(r'<path class="edge" d="([^"]+)"', dom)
    assert len(boxes) == 10 and len(paths) == 12
    for path in paths:
        for px, py in _along(path):
            assert not any(x + 2 < px < x + w - 2 and y + 2 < py < y + h - 2 for x, y, w, h in boxes), path
