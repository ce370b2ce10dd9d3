"""Lazy loading: names of packages, declarations of operators."""

import importlib
import json
from pathlib import Path

import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.base.names.lazy_names import LAZY
from fluidlite.ops import registry
from fluidlite.ops.places import PLACES

SCRIPT = Path(__file__).parents[1] / "scripts" / "lazy_names.py"


@pytest.mark.skipif(not SCRIPT.exists(), reason="needs the source tree")
def test_tables_are_up_to_date(python):
    done = python(SCRIPT, "--check")
    assert done.returncode == 0, done.stderr


def test_an_import_loads_no_layers_and_few_operators(python):
    done = python(
        "-c",
        "import fluidlite, json, sys; print(json.dumps([m for m in sys.modules if m[:9] == 'fluidlite']))",
    )
    loaded = json.loads(done.stdout)
    assert not [
        name
        for name in loaded
        if name.startswith(("fluidlite.distributed.rpc", "fluidlite.layers.nn", "fluidlite.ops.nn"))
    ]
    assert len(loaded) < 300, sorted(loaded)


def test_a_script_of_two_lines_loads_what_it_needs(python):
    code = "import sys, paddle.fluid as fluid; fluid.data('x', [None, 4]); print(*sys.modules)"
    loaded = set(python("-m", "fluidlite", "-c", code).stdout.split())
    assert "fluidlite.paddle" in loaded
    assert not loaded & {
        "multiprocessing.spawn",
        "fluidlite.executor.interpreter.segmented",
        "fluidlite.paddle.saving",
        "fluidlite.paddle.tensor.math",
        "fluidlite.reader.worker.pool",
    }


@pytest.mark.parametrize(
    "first", ["import fluidlite", "from fluidlite import __main__, old_scripts, __version__"]
)
def test_fluids_names_are_not_read_until_one_is_missing(python, first):
    size = (
        "from fluidlite.base.names.fluid_modules import listed; print(listed.cache_info().currsize, end=' ')"
    )
    code = f"{first}; {size}; import fluidlite as fluid; fluid.nets; {size}; fluid.no_such_name"
    done = python("-c", code)
    assert done.stdout == "0 0 "
    assert "module 'fluid' has no attribute 'no_such_name'" in done.stderr


def test_methods_of_tensors_are_functions_once_they_are_looked_up(python):
    code = (
        "import numpy as np, sys, paddle\n"
        "from fluidlite.eager import Tensor\n"
        "before = [type(vars(Tensor)[name]).__name__ for name in ('add_', '__getitem__')]\n"
        "x = paddle.to_tensor(np.arange(4.0))\n"
        "assert not 'fluidlite.paddle.tensor.linalg' in sys.modules\n"
        "assert (x @ x).item() == 14 and x.dot(x).item() == 14 and x.add_(x)[1].item() == 2\n"
        "assert Tensor.dot is paddle.dot and Tensor.add_.__name__ == 'add_'\n"
        "print(*before, *(type(vars(Tensor)[name]).__name__ for name in ('add_', '__getitem__')))\n"
    )
    assert python("-m", "fluidlite", "-c", code).stdout.split() == ["_Method"] * 2 + ["function"] * 2


def test_each_module_of_operators_loads_alone(python):
    code = (
        "import sys, fluidlite\n"
        "from fluidlite.ops import registry\n"
        "for op_type in sys.argv[1:]:\n"
        "    assert registry.find(op_type).type == op_type\n"
    )
    some = [types.split()[-1] for types in PLACES.values()]
    for part in (some[::-1][:20], some[::7]):
        done = python("-c", code, *part)
        assert done.returncode == 0, done.stderr


def test_places_are_those_of_the_declarations():
    assert sorted(" ".join(PLACES.values()).split()) == registry.known_types()


def test_a_declaration_that_no_table_has_is_found(monkeypatch):
    monkeypatch.setattr(registry, "PLACES", {})
    registry._places.cache_clear()
    try:
        assert registry.is_known("softmax") and registry.find("softmax").type == "softmax"
        assert not registry.is_known("softmaxx")
        with pytest.raises(
            registry.UnknownOperator, match=r"no operator 'softmaxx'; did you mean 'softmax'\?"
        ):
            registry.find("softmaxx")
    finally:
        registry._places.cache_clear()


def test_lazy_names_can_be_listed_and_taken_with_a_star():
    space: dict[str, object] = {}
    exec("from fluidlite.layers import *", space)
    assert space["fc"] is layers.fc and space["batch_norm"] is layers.batch_norm is fluid.layers.nn.batch_norm
    assert {"fc", "While", "WhileGuard", "nn"} <= set(dir(layers))
    assert "detection_map" in dir(layers.detection) and "detection_map" not in space
    assert {"ParallelExecutor", "core", "profiler"} <= set(dir(fluid))


def test_near_names_are_suggested_from_lazy_ones():
    with pytest.raises(AttributeError, match="did you mean 'spectral_norm'"):
        _ = layers.spectral_nrom


@pytest.mark.parametrize("package", sorted(LAZY))
def test_every_lazy_name_is_there(package):
    module = importlib.import_module(package)
    for part in LAZY[package]:
        for names in part.values():
            for name in names.split():
                assert getattr(module, name.partition("=")[0]) is not None


def test_a_function_called_as_its_module_stays_one():
    import fluidlite.paddle as paddle

    for _ in range(2):
        assert paddle.check_import_scipy("posix") is None
        importlib.import_module("fluidlite.paddle.check_import_scipy")
