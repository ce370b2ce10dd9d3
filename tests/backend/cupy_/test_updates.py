"""Updates of parameters on the GPU."""

import numpy as np
import pytest

from fluidlite import backend
from fluidlite.backend.cupy_.launchers import updates
from fluidlite.ops.registry import find

from .agreement import gpu, launched, on_gpu, rand, refused, same

CASES = {
    "sgd": [{}],
    "momentum": [{"mu": 0.9}, {"mu": 0.9, "use_nesterov": True}],
    "adam": [{}, {"beta1": 0.8, "beta2": 0.99, "epsilon": 1e-4}],
    "adamax": [{}],
    "adagrad": [{"epsilon": 1e-3}],
    "decayed_adagrad": [{"decay": 0.9}],
    "adadelta": [{"rho": 0.9, "epsilon": 1e-4}],
    "rmsprop": [{}, {"momentum": 0.9, "decay": 0.8, "epsilon": 1e-3}, {"centered": True, "epsilon": 1e-2}],
    "ftrl": [{}, {"l1": 0.1, "l2": 0.2, "lr_power": -0.7}],
}
SIZES = [(1,), (3, 5), (2048,), (41, 101), (0,)]


def inputs(op_type, shape, dtype="float32", rate="float32"):
    """Arrays for each slot: squares are positive, powers less than 1."""
    made = {}
    for seed, slot in enumerate(find(op_type).input_slots):
        if slot.name == "LearningRate":
            made[slot.name] = np.array([0.05], rate)
        elif slot.name.endswith("Pow"):
            made[slot.name] = np.array([0.9 if "1" in slot.name else 0.999], dtype)
        elif slot.name in ("Param", "Grad", "Velocity", "LinearAccumulator", "MeanGrad", "Moment1"):
            made[slot.name] = rand(*shape, dtype=dtype, seed=seed)
        elif not slot.name.endswith("Tensor"):
            made[slot.name] = np.abs(rand(*shape, dtype=dtype, seed=seed)) + np.asarray(0.1, dtype)
    if "MeanGrad" in made:
        made["MeanGrad"] = (made["MeanGrad"] * 0.1).astype(
            dtype
        )  # its square is less than the mean of squares
    return made


def expected(op_type, given, attrs):
    """The results of the reference kernel, by slot."""
    results = find(op_type).call(np, {slot: [array] for slot, array in given.items()}, attrs)
    return dict(zip(updates.RULES[op_type].results, results, strict=True))


def test_there_is_a_case_for_every_kernel():
    assert set(CASES) == set(updates.RULES)
    assert {op for op in CASES if find(op).dispatch.cuda == f"updates.make:{op}"} == set(CASES)


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("op_type", CASES)
def test_one(op_type):
    for attrs in CASES[op_type]:
        for shape, dtype in [*((shape, "float32") for shape in SIZES), ((7, 300), "float64")]:
            given = inputs(op_type, shape, dtype)
            here = on_gpu(given)
            made = launched(op_type, here, **attrs)
            for (slot, theirs), mine in zip(expected(op_type, given, attrs).items(), made, strict=True):
                assert mine is here[slot][0], "updates are in place"
                same(backend.to_host(mine), theirs, f"{op_type} {slot} {shape} {attrs}", 4)


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("op_type", CASES)
def test_many_in_one_launch(op_type):
    attrs = {**find(op_type).attrs, **CASES[op_type][-1]}
    shapes = [(3 + 40 * k, 1 + k % 3) for k in range(updates.ENTRIES + 5)]
    given = [inputs(op_type, shape) for shape in shapes]
    device = gpu()
    entries = [{slot: device.put(array) for slot, array in each.items()} for each in given]
    with device.active():
        updates.update(device, op_type, entries, attrs)
        updates.update(device, op_type, entries, attrs)
    for entry, each in zip(entries, given, strict=True):
        each.update(expected(op_type, each, attrs))
        each.update(expected(op_type, each, attrs))
        for slot in updates.RULES[op_type].results:
            same(backend.to_host(entry[slot]), each[slot], f"{op_type} {slot}", 20)


def test_so_many_launches(simulation):
    device = gpu()
    entries = [on_one(device, inputs("adam", (5,))) for _ in range(updates.ENTRIES + 1)]
    with device.active():
        updates.update(device, "adam", entries, find("adam").attrs)
        simulation.counters.reset()
        updates.update(device, "adam", entries[:-1], find("adam").attrs)
        assert (simulation.counters.launches, simulation.counters.syncs) == (1, 0)
        assert not simulation.counters.copies
        updates.update(device, "adam", entries, find("adam").attrs)
        assert simulation.counters.launches == 3


def test_work_aside_of_the_main_stream_has_its_own_tickets(simulation):
    device = gpu()
    with device.active():
        here = updates.tickets(device)
        assert updates.tickets(device) is here
    with device.diverted(simulation.cupy.cuda.Stream(non_blocking=True)):
        assert updates.tickets(device) is not here


def on_one(device, given):
    return {slot: device.put(array) for slot, array in given.items()}


@pytest.mark.usefixtures("cuda")
def test_rates_of_another_type():
    for dtype, rate in (("float32", "float64"), ("float64", "float32")):
        for op_type in ("sgd", "adam", "adamax"):
            given = inputs(op_type, (6,), dtype, rate)
            (mine, *_) = launched(op_type, on_gpu(given))
            theirs = expected(op_type, given, {})["Param"]
            np.testing.assert_allclose(backend.to_host(mine), theirs, rtol=2e-5, atol=2e-6)


@pytest.mark.usefixtures("cuda")
def test_betas_as_arrays():
    given = inputs("adam", (9,))
    given |= {"Beta1Tensor": np.array([0.7], "float32"), "Beta2Tensor": np.array([0.9], "float32")}
    for mine, (slot, theirs) in zip(
        launched("adam", on_gpu(given)), expected("adam", given, {}).items(), strict=True
    ):
        same(backend.to_host(mine), theirs, slot, 8)


@pytest.mark.usefixtures("cuda")
def test_weight_decay_is_added_to_the_gradient():
    given = inputs("momentum", (50,))
    device = gpu()
    entry = {**on_one(device, given), "Decay": 0.25}
    attrs = {"mu": 0.9, "use_nesterov": False}
    with device.active():
        updates.update(device, "momentum", [entry], attrs)
    decayed = {**given, "Grad": given["Grad"] + np.float32(0.25) * given["Param"]}
    same(backend.to_host(entry["Param"]), expected("momentum", decayed, attrs)["Param"], "Param", 4)


@pytest.mark.usefixtures("cuda")
def test_without_decay_an_infinite_parameter_leaves_the_gradient_alone():
    given = inputs("adagrad", (3,))
    given["Param"][1] = np.inf
    here = on_gpu(given)
    moment = launched("adagrad", here)[1]
    assert np.isfinite(backend.to_host(moment)).all()


@pytest.mark.usefixtures("cuda")
def test_adamax_carries_the_power_on():
    device = gpu()
    entry = on_one(device, inputs("adamax", (5000,)))
    with device.active():
        updates.update(device, "adamax", [entry], {**find("adamax").attrs, "carry": 0.5})
    assert backend.to_host(entry["Beta1Pow"]) == np.float32(0.45)


@pytest.mark.usefixtures("cuda")
def test_what_does_not_fit_is_left_to_the_reference_kernel():
    for slot, change in (
        ("Moment1", lambda a: a.astype("float64")),
        ("Beta1Pow", lambda a: a.astype("float64")),
        ("Grad", lambda a: a.astype("float64")),
        ("LearningRate", lambda a: np.array([1], "int64")),
        ("Moment2", lambda a: a[:3].copy()),
    ):
        given = inputs("adam", (8,))
        given[slot] = change(given[slot])
        assert refused("adam", given), slot
    device = gpu()
    given = {slot: [array] for slot, array in on_one(device, inputs("sgd", (4, 4))).items()}
    given["Param"] = [given["Param"][0].T]
    with pytest.raises(NotImplementedError):
        launched("sgd", given)
    given = {slot: [array] for slot, array in on_one(device, inputs("sgd", (4, 4))).items()}
    param, grad = (backend.to_host(given[slot][0]) for slot in ("Param", "Grad"))
    given["Grad"] = [given["Grad"][0].T]  # a gradient is only read, and so may lie in any order
    (made,) = launched("sgd", given)
    same(backend.to_host(made), param - np.float32(0.05) * grad.T, "sgd", 4)
