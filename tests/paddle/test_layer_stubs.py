"""Layer classes that are made from functions show their arguments, to `help` and to type checkers."""

import inspect
from pathlib import Path

import pytest

from fluidlite.paddle import nn

SCRIPT = Path(__file__).parents[2] / "scripts" / "layer_stubs.py"


@pytest.mark.skipif(not SCRIPT.exists(), reason="needs the source tree")
def test_stubs_are_up_to_date(python):
    done = python(SCRIPT, "--check")
    assert done.returncode == 0, done.stderr


def test_classes_take_what_their_functions_take():
    taken = inspect.signature(nn.Hardsigmoid).parameters
    assert {name: one.default for name, one in taken.items()} == {"slope": 1 / 6, "offset": 0.5, "name": None}
    with pytest.raises(TypeError, match="slop"):
        nn.Hardsigmoid(slop=0.1)


def test_classes_made_from_them_take_their_own():
    class Scaled(nn.Hardsigmoid):
        def __init__(self, factor):
            super().__init__(slope=factor / 6)

    assert list(inspect.signature(Scaled).parameters) == ["factor"]
    assert Scaled(2)._arguments == {"slope": 1 / 3}
