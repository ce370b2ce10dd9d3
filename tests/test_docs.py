"""Files and names in docs/ exist, and the code shown there runs."""

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from fluidlite.ops import registry

from .recorded import sections_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
README = (ROOT / "README.md").read_text(encoding="utf8") if (ROOT / "README.md").exists() else ""
SUFFIXES = (".py", ".pyx", ".pyi", ".pxi", ".md", ".cc", ".h", ".txt", ".toml")
source_tree = pytest.mark.skipif(
    not (ROOT / "setup.py").exists(), reason="the pages name files of the source tree, which is not here"
)


def text_of(name):
    return (DOCS / name).read_text(encoding="utf8")


def blocks(text):
    """The fenced blocks of a page: pairs of language and text."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def paths_named(text):
    """The files and folders in backticks, and the targets of links."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    for name in re.findall(r"`([\w.-]+(?:/[\w.-]+)*/?)`", prose):
        if name.endswith(SUFFIXES) or name.startswith(("fluidlite/", "tests/", "benchmarks/")):
            yield name
    yield from (target for target in re.findall(r"\]\(([^)#]+)\)", prose) if "://" not in target)


@source_tree
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_named_exist(page):
    # Pages name files from the root, from the package, beside themselves, or by their last name alone.
    bases = (ROOT, ROOT / "fluidlite", ROOT / "fluidlite/executor", DOCS)
    package = {path.name for path in (ROOT / "fluidlite").rglob("*.*")}
    gone = [
        name
        for name in paths_named(page.read_text(encoding="utf8"))
        if name not in package and not any((base / name).exists() for base in bases)
    ]
    assert not gone, f"docs/{page.name} names files that do not exist: {gone}"


def anchors(text):
    """The names by which links reach the headings of a page, as GitHub and Python-Markdown make them."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_headings_that_are_linked_exist(page):
    links = re.findall(r"\]\(([\w.]*)#([^)]+)\)", page.read_text(encoding="utf8"))
    gone = [f"{name}#{part}" for name, part in links if part not in anchors(text_of(name or page.name))]
    assert not gone, f"docs/{page.name} links to headings that do not exist: {gone}"


@source_tree
def test_links_of_the_readme_lead_somewhere():
    named = paths_named(README)
    gone = [name for name in named if not (ROOT / name).exists() and name not in ("train.py", "model.onnx")]
    assert not gone, f"README.md names files that do not exist: {gone}"


@source_tree
@pytest.mark.parametrize("code", [text for name, text in blocks(README) if name == "python"])
def test_python_of_the_readme_runs(code, python):
    done = python("-c", code)
    assert done.returncode == 0, done.stderr


@source_tree
def test_commands_of_the_readme_exist():
    commands = {"draw", "profile", "plot", "export", "launch"}
    text = README
    assert {*re.findall(r"^\| `fluidlite (\w+) ", text, re.MULTILINE)} == commands


def test_eager_step_prints_what_the_page_shows(python):
    *_, (_, code), (_, shown) = blocks(text_of("life_of_a_step.md"))
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown, f"docs/life_of_a_step.md should show:\n{done.stdout}"


def test_step_example_prints_what_the_page_shows(python):
    (_, code), (_, shown), _, _, (_, more), *_ = blocks(text_of("life_of_a_step.md"))
    done = python("-c", code + more)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(shown), f"docs/life_of_a_step.md should show:\n{done.stdout}"
    for row in ("mul", "elementwise_add", "Executor.run"):
        assert re.search(rf"^thread0::{re.escape(row)} +\d+0 ", done.stdout, re.MULTILINE)


def test_loop_example_prints_what_the_page_shows(python):
    _, _, (_, code), (_, shown), *_ = blocks(text_of("life_of_a_step.md"))
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown, f"docs/life_of_a_step.md should show:\n{done.stdout}"


def test_sequence_example_prints_what_the_page_shows(python):
    found = blocks(text_of("life_of_a_sequence.md"))
    code = [text for language, text in found if language == "python"]
    shown = [text for before, (_, text) in zip(found, found[1:], strict=False) if before[0] == "python"]
    done = python("-c", "\n".join(code))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(shown), f"docs/life_of_a_sequence.md should show:\n{done.stdout}"


def test_operator_example_works(monkeypatch):
    registry.load_all()
    monkeypatch.setattr(registry, "_OPS", dict(registry._OPS))
    spaces = {}
    for language, code in blocks(text_of("add_an_operator.md")):
        assert language == "python"
        path = re.match(r"# (\S+)\.py\n", code)[1]
        name = path.replace("/", ".")
        spaces[name] = module = ModuleType(name)
        module.__package__ = name.rpartition(".")[0]
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(code, path, "exec"), vars(module))

    assert "hard_tanh" in registry.known_types()
    layer = spaces["fluidlite.fluid.layers.nn.hard_tanh"].hard_tanh
    tests = spaces["tests.ops.nn.test_hard_tanh"]
    tests.test_hard_tanh(limit=0.5)
    tests.test_limit_must_be_positive()
    fluid = importlib.import_module("fluidlite")
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        out = layer(fluid.data("x", [None, 3], "float32"), limit=2.0)
        assert out.shape == (-1, 3) and out.block.ops[-1].attr("limit") == 2.0
        image = fluid.data("image", [None, 2, 4], "float32")
        out = spaces["fluidlite.fluid.layers.nn.gain"].gain(image)
        assert out.name == "gain_0.tmp_0" and out.block.ops[-1].input("Y") == ["gain_0.w_0"]
    x = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    with fluid.dygraph.guard():
        made = spaces["fluidlite.fluid.dygraph.nn.gain"].Gain(2)(fluid.dygraph.to_variable(x))
        np.testing.assert_array_equal(made.numpy(), x)
        weight = fluid.dygraph.to_variable(np.array([2, 3], np.float32))
        made = spaces["fluidlite.paddle.nn.functional.gain"].gain(fluid.dygraph.to_variable(x), weight)
        np.testing.assert_array_equal(made.numpy(), x * [[[2], [3]]])


def test_examples_for_datasets_run(python):
    code = "\n".join(text for language, text in blocks(text_of("datasets.md")) if language == "python")
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    shown = next(text for language, text in blocks(text_of("datasets.md")) if text.startswith("1 epoch"))
    assert [line[:24] for line in done.stdout.splitlines()[:-1]] == [
        line[:24] for line in shown.splitlines()[:-1]
    ]


def read_from_environment():
    """The switches for GPUs that the package reads: FLAGS_..., and those of its own in the folders concerned.

    FLAGS_check_nan_inf is about programs wherever they run.
    """
    package = ROOT / "fluidlite"
    own = [package / "base" / "flags.py", *(package / "backend").rglob("*.py")]
    own = {name for path in own for name in re.findall(r"FLUIDLITE_\w+", path.read_text(encoding="utf8"))}
    texts = [path.read_text(encoding="utf8") for path in package.rglob("*.py")]
    flags = {name for text in texts for name in re.findall(r'"(FLAGS_\w+)"', text)}
    return own | flags - {"FLAGS_check_nan_inf"}


@source_tree
def test_switches_for_gpus_are_listed():
    section = text_of("gpu.md").split("## Switches")[1].split("\n## ")[0]
    listed = {
        name
        for row in re.findall(r"^\|([^|]+)\|", section, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert listed == read_from_environment()


def test_public_names_that_are_missing_say_why():
    states, _, reasons = text_of("names.md").partition("## Why never")
    assert "\nraises when used:" not in states and "\nmissing:" not in states
    assert "fluid.core.BoxPS" in reasons


def commands():
    """The `python benchmarks/...` lines in docs: script and the options given to it."""
    for page in PAGES:
        for line in re.findall(r"python (benchmarks/\w+\.py.*)", page.read_text(encoding="utf8")):
            script, *arguments = line.split("`")[0].split()
            yield script, tuple(word for word in arguments if word.startswith("--"))


HELP_OF_ALL = """
import runpy, sys
folder, *scripts = sys.argv[1:]
sys.path.insert(0, folder)
for script in scripts:
    print("== " + script)
    sys.argv = [script, "--help"]
    try:
        runpy.run_path(f"{folder}/{script}", run_name="__main__")
    except SystemExit as end:
        assert not end.code, script
"""


@source_tree
def test_commands_name_options_that_exist(python):
    named = {(Path(script).name, options) for script, options in commands()}
    done = python("-c", HELP_OF_ALL, ROOT / "benchmarks", *sorted({script for script, _ in named}))
    assert done.returncode == 0, done.stderr
    shown = sections_of(done.stdout)
    wrong = [
        (script, option) for script, options in named for option in options if option not in shown[script]
    ]
    assert len(shown) > 15 and wrong == []
