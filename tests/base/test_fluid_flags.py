"""`fluid.get_flags`, `fluid.set_flags`, `fluid.core.globals()`; errors are those of Paddle 1.8.5."""

import pytest

import fluidlite as fluid
from fluidlite import core
from fluidlite.base import flags
from fluidlite.base.errors import EnforceNotMet


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    for name in ("FLAGS_check_nan_inf", "FLAGS_eager_delete_tensor_gb", "FLAGS_cudnn_deterministic"):
        monkeypatch.setenv(name, "0")
        monkeypatch.delenv(name)


def test_values_are_kept_in_their_type():
    assert fluid.get_flags("FLAGS_eager_delete_tensor_gb") == {"FLAGS_eager_delete_tensor_gb": 0.0}
    fluid.set_flags({"FLAGS_eager_delete_tensor_gb": 2, "FLAGS_check_nan_inf": 1})
    assert repr(fluid.get_flags(["FLAGS_eager_delete_tensor_gb", "FLAGS_check_nan_inf"])) == (
        "{'FLAGS_eager_delete_tensor_gb': 2.0, 'FLAGS_check_nan_inf': True}"
    )
    fluid.set_flags({"FLAGS_eager_delete_tensor_gb": 0, "FLAGS_check_nan_inf": False})
    assert core.globals()["FLAGS_allocator_strategy"] == "auto_growth"


def test_the_package_heeds_known_flags(monkeypatch):
    assert not flags.cudnn_deterministic()
    fluid.set_flags({"FLAGS_cudnn_deterministic": True})
    assert flags.cudnn_deterministic()
    monkeypatch.setenv("FLAGS_cudnn_deterministic", "no")
    assert fluid.get_flags(("FLAGS_cudnn_deterministic",)) == {"FLAGS_cudnn_deterministic": False}
    monkeypatch.setenv("FLAGS_initial_cpu_memory_in_mb", "many")
    with pytest.raises(ValueError, match="FLAGS_initial_cpu_memory_in_mb.*int.*'many'"):
        fluid.get_flags("FLAGS_initial_cpu_memory_in_mb")


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: fluid.get_flags("FLAGS_no_such"), ValueError),
        (lambda: fluid.set_flags({"FLAGS_no_such": 1}), ValueError),
        (lambda: fluid.get_flags("FLAGS_use_mkldnn"), ValueError),
        (lambda: fluid.get_flags(3), TypeError),
        (lambda: fluid.get_flags([3]), TypeError),
        (lambda: fluid.set_flags(["FLAGS_check_nan_inf"]), TypeError),
        (lambda: fluid.set_flags({3: 1}), TypeError),
        (lambda: fluid.set_flags({"FLAGS_check_nan_inf": "true"}), RuntimeError),
        (lambda: fluid.set_flags({"FLAGS_eager_delete_tensor_gb": "abc"}), RuntimeError),
        (lambda: core.globals()["FLAGS_no_such"], EnforceNotMet),
    ],
)
def test_mistakes(call, error):
    with pytest.raises(error):
        call()


def test_nothing_is_set_if_a_name_is_wrong():
    with pytest.raises(ValueError, match="FLAGS_no_such"):
        fluid.set_flags({"FLAGS_check_nan_inf": True, "FLAGS_no_such": 1})
    assert not fluid.get_flags("FLAGS_check_nan_inf")["FLAGS_check_nan_inf"]


def test_all_of_them():
    every = core.globals()
    assert "FLAGS_benchmark" in every and "FLAGS_no_such" not in every and every.get("FLAGS_no_such", 3) == 3
    assert {every.is_public(name) for name in every.keys()} == {True, False}  # noqa: SIM118
    assert all(every[name] is not None for name in every.keys())  # noqa: SIM118
