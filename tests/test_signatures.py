"""Functions and classes take the arguments that those of real Paddle 1.8.5 take, by the same names and defaults.

`signatures.txt` holds what `inspect.signature` said there; `forward` and `__call__` of a class stand under its name.
"""

import ast
import inspect
from pathlib import Path

import fluidlite as fluid
from fluidlite.base.names.stand_ins import is_stand_in

RECORDED = Path(__file__).with_name("signatures.txt").read_text().splitlines()

# What is made by other means here, or takes its arguments in another way that calls cannot tell.
OTHERWISE = {
    "dygraph.DataParallel": "the strategy may be left out, as later",
    "dygraph.ProgramTranslator": "the only one there is: takes nothing",
    "dygraph.TracedLayer": "made by `trace`, not by calling",
    "io.compose": "its option is named",
    "metrics.DetectionMAP": "the same arguments, one by one, where it reads them",
}


def _parameters(text):
    """Name to default (None: must be given) of `a, b=1, *args`; stars stay with their names."""
    found = {}
    node = ast.parse(f"def f({text.replace('=...', '=Ellipsis')}): 0").body[0].args
    assert not node.kwonlyargs
    given = [None] * (len(node.args) - len(node.defaults)) + [ast.unparse(value) for value in node.defaults]
    found |= {arg.arg: value for arg, value in zip(node.args, given, strict=True)}
    if node.vararg:
        found["*" + node.vararg.arg] = None
    if node.kwarg:
        found["**" + node.kwarg.arg] = None
    return found


def _same(recorded, default):
    """Whether two defaults mean the same: lists may be tuples, numbers of another type; objects are not compared."""
    if recorded in ("None", "Ellipsis"):
        return recorded == "Ellipsis" or default is None
    value = ast.literal_eval(recorded)
    return (tuple(value) if isinstance(value, list) else value) == (
        tuple(default) if isinstance(default, list) else default
    )


def _ours(path):
    found = fluid
    for part in path.split("."):
        found = getattr(found, part)
    return found


def test_all_take_what_fluid_takes():
    assert len(RECORDED) > 600
    for line in RECORDED:
        _check(line)


def _check(line):
    path, _, text = line[:-1].partition("(")
    try:
        ours = _ours(path)
    except AttributeError:
        assert path.endswith((".forward", ".__call__")), f"no fluid.{path}"  # inherited here
        return
    if path in OTHERWISE or is_stand_in(ours):
        return
    recorded = _parameters(text)
    parameters = inspect.signature(ours).parameters
    names = [{2: "*", 4: "**"}.get(one.kind, "") + name for name, one in parameters.items()]
    assert names[: len(recorded)] == list(recorded), (
        f"fluid.{path}{inspect.signature(ours)} should take ({text})"
    )
    for one, default in zip(parameters.values(), recorded.values(), strict=False):
        if default is None:
            assert one.default is one.empty, f"fluid.{path}: {one.name} must be given"
        else:
            assert _same(default, one.default), f"fluid.{path}: {one.name}={default}, not {one.default!r}"
    for one in list(parameters.values())[len(recorded) :]:
        optional = one.default is not one.empty or one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
        assert optional, f"fluid.{path}: {one.name} is needed here only"
