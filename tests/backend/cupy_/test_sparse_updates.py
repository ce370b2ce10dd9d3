"""Updates of the rows of tables on the GPU."""

import dataclasses

import numpy as np
import pytest

from fluidlite import backend
from fluidlite.backend.cupy_.launchers import updates
from fluidlite.base.selected_rows import SelectedRows
from fluidlite.ops.registry import find

from .agreement import gpu, rand, same
from .test_updates import inputs

CASES = [
    ("sgd", {}),
    ("adagrad", {"epsilon": 1e-3}),
    ("adam", {"lazy_mode": True}),
    ("adam", {"epsilon": 1e-3}),
]
HEIGHT = 40
PLACES = [
    np.array([3]),
    np.array([5, 3, 5, 5, 0, 39, 3]),
    np.random.default_rng(0).integers(0, HEIGHT, 300),
    np.arange(HEIGHT)[::-1].copy(),
]


def gradient(rows, width, dtype="float32"):
    return SelectedRows(rows.astype("int64"), rand(len(rows), width, dtype=dtype, seed=9), HEIGHT)


def launched(op_type, given, attrs):
    """The launcher's results for device copies, by slot; fails if it leaves the case to the reference kernel."""
    definition = find(op_type)
    rule = dataclasses.replace(
        definition.dispatch.rows, kernel=lambda xp: pytest.fail("left to the reference kernel")
    )
    definition = dataclasses.replace(definition, dispatch=dataclasses.replace(definition.dispatch, rows=rule))
    device = gpu()

    def put(value):
        if isinstance(value, SelectedRows):
            return SelectedRows(device.put(value.rows), device.put(value.values), value.height)
        return device.put(value)

    here = {slot: [put(value)] for slot, value in given.items()}
    with device.active():
        made = definition.call(device.xp, here, attrs, device=device)
    for slot, array in zip(updates.RULES[op_type].results, made, strict=True):
        assert array is here[slot][0], "updates are in place"
    return [backend.to_host(array) for array in made]


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(("op_type", "attrs"), CASES)
@pytest.mark.parametrize("rows", PLACES, ids=len)
@pytest.mark.parametrize(("width", "dtype"), [(1, "float32"), (7, "float32"), (150, "float64")])
def test_agrees_with_the_reference_kernel(op_type, attrs, rows, width, dtype):
    given = inputs(op_type, (HEIGHT, width), dtype)
    given["Grad"] = gradient(rows, width, dtype)
    expected = find(op_type).call(np, {slot: [value] for slot, value in given.items()}, attrs)
    for mine, theirs in zip(launched(op_type, given, attrs), expected, strict=True):
        same(mine, theirs, f"{op_type} {attrs}", 10)


@pytest.mark.usefixtures("cuda")
def test_rows_outside_of_the_table_are_passed_over():
    given = inputs("sgd", (HEIGHT, 3))
    rows = np.array([4, HEIGHT, -1, 4])
    given["Grad"] = gradient(rows, 3)
    (mine,) = launched("sgd", given, {})
    theirs = given["Param"].copy()
    theirs[4] -= np.float32(0.05) * (given["Grad"].values[0] + given["Grad"].values[3])
    same(mine, theirs, "sgd", 4)


@pytest.mark.usefixtures("cuda")
def test_betas_as_arrays():
    for lazy in (False, True):
        given = inputs("adam", (HEIGHT, 5))
        given["Grad"] = gradient(PLACES[1], 5)
        given |= {"Beta1Tensor": np.array([0.7], "float32"), "Beta2Tensor": np.array([0.9], "float32")}
        attrs = {"lazy_mode": lazy}
        expected = find("adam").call(np, {slot: [value] for slot, value in given.items()}, attrs)
        for mine, theirs in zip(launched("adam", given, attrs), expected, strict=True):
            same(mine, theirs, f"lazy {lazy}", 10)


def test_nothing_waits(simulation):
    given = inputs("adam", (HEIGHT, 5))
    device = gpu()
    here = {slot: device.put(array) for slot, array in given.items() if slot != "Grad"}
    grad = gradient(PLACES[2], 5)
    here["Grad"] = SelectedRows(device.put(grad.rows), device.put(grad.values), HEIGHT)
    attrs = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "Beta1Tensor": None, "Beta2Tensor": None}
    with device.active():
        for lazy, launches in ((True, 2), (False, 3)):
            updates.adam(device, **here, **attrs, lazy_mode=lazy)
            simulation.counters.reset()
            updates.adam(device, **here, **attrs, lazy_mode=lazy)
            assert (simulation.counters.launches, simulation.counters.syncs) == (launches, 0)


@pytest.mark.usefixtures("cuda")
def test_many_rows_are_left_to_the_reference_kernel(monkeypatch):
    monkeypatch.setattr(updates, "_MOST", 5)
    given = inputs("sgd", (HEIGHT, 3))
    device = gpu()
    grad = SelectedRows(device.put(np.arange(6)), device.put(rand(6, 3)), HEIGHT)
    with device.active():
        made = updates.sgd(device, device.put(given["Param"]), grad, device.put(given["LearningRate"]))
    assert made is NotImplemented
