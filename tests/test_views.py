"""Modules that exist by name alone (`base/names/views.py`) can be imported, and have the objects of other modules."""

import importlib
import pickle
import subprocess
import sys

import pytest

from fluidlite.base.names import fluid_modules
from fluidlite.base.names.views import VIEWS


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_the_objects_of_the_modules_that_define_them(view):
    module = importlib.import_module(f"fluidlite.{view}")
    shown = []
    for home, names in VIEWS[view].items():
        source = importlib.import_module(f"fluidlite.{home}")
        public, _, others = names.partition("|")
        for entry in (*public.split(), *others.split()):
            name, _, there = entry.partition("=")
            assert getattr(module, name) is getattr(source, there or name)
        shown += [entry.partition("=")[0] for entry in public.split()]
    assert module.__all__ == shown and module.__name__ == f"fluidlite.{view}" and module.__doc__
    with pytest.raises(AttributeError, match="nosuch"):
        module.nosuch  # noqa: B018


def test_packages_have_no_other_module_by_the_name_of_a_view():
    """Before the view was imported, too: in a new process."""
    code = """
import importlib, types, fluidlite
from fluidlite.base.names.views import VIEWS
for view in VIEWS:
    package, _, name = f"fluidlite.{view}".rpartition(".")
    found = vars(importlib.import_module(package)).get(name)
    assert not isinstance(found, types.ModuleType) or found.__name__ == f"fluidlite.{view}", (view, found)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_a_module_of_its_package(view):
    package, _, name = f"fluidlite.{view}".rpartition(".")
    code = f"import sys, fluidlite.{view} as found; assert found is sys.modules['fluidlite.{view}']; "
    code += f"from {package} import {name} as again; assert again is found"
    if view in (
        "fluid.transpiler.details.ufind",
        "paddle.complex.tensor.math",
        "fluid.device_worker",
    ):  # the same for all
        subprocess.run([sys.executable, "-c", code], check=True)
    assert fluid_modules.fluid_name(f"fluidlite.{view}") != f"fluidlite.{view}"


def test_starting_loads_no_view():
    code = "import sys, fluidlite; from fluidlite.base.names.views import VIEWS; "
    code += "print([view for view in VIEWS if 'fluidlite.' + view in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "name", ["layers", "layers.nn.activations", "dygraph.nn", "contrib.slim", "net_drawer", "clip"]
)
def test_modules_of_fluid_have_a_name_without_fluid(name):
    code = f"import fluidlite.{name} as short, fluidlite.fluid.{name} as module, sys\n"
    code += f"assert short is module is sys.modules['fluidlite.{name}']\n"
    code += f"assert module.__name__ == module.__spec__.name == 'fluidlite.fluid.{name}'\n"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["nosuch", "layers.nosuch", "nosuch.layers", "fluid.nosuch", "clip.nosuch"])
def test_modules_that_do_not_exist_are_not_found(name):
    with pytest.raises(ModuleNotFoundError, match="nosuch"):
        importlib.import_module(f"fluidlite.{name}")


def test_pickles_by_the_name_without_fluid_can_be_read():
    assert pickle.loads(b"cfluidlite.dygraph.nn.convolution\nConv2D\n.").__name__ == "Conv2D"
