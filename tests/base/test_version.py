"""`fluid.require_version`: accepts and refuses what Fluid 1.8.5 does."""

import pytest

import fluidlite
from fluidlite import require_version


@pytest.mark.parametrize(
    "bounds",
    [
        ("1.8",), ("1.8.5.0",), ("1",), ("1.8.4.1",), ("1.8", "2.0"), ("1.8.5", "1.8.5"),
        ("1.8", "1.8.5.1"), ("0.0.0",),
    ],
)  # fmt: skip
def test_accepted(bounds):
    assert require_version(*bounds) is None
    assert fluidlite.framework.require_version is require_version


@pytest.mark.parametrize(
    "bounds, error, message",
    [
        (("1.9",), RuntimeError, "version 1.9 or higher is required, but fluidlite follows 1.8.5"),
        (("1.8.5.1",), RuntimeError, "1.8.5.1 or higher"),
        (("0.1", "1.7"), RuntimeError, r"version in \[0.1, 1.7\] is required"),
        (("1.8", "1.8"), RuntimeError, r"\[1.8, 1.8\]"),
        (("2.0", "1.0"), RuntimeError, "is required"),
        ((1.8,), TypeError, "min_version of require_version must be a str, got 1.8"),
        (("1.8", 3), TypeError, "max_version"),
        (("1.8.5-rc0",), ValueError, "must look like '1.5.2.0'"),
        (("1.8.5.0.1",), ValueError, "min_version"),
        (("1.8", "x"), ValueError, "max_version"),
        (("",), ValueError, "got ''"),
    ],
)
def test_refused(bounds, error, message):
    with pytest.raises(error, match=message) as caught:
        require_version(*bounds)
    # Fluid raises a plain Exception for another release.
    assert caught.type.__name__ == ("Exception" if error is RuntimeError else error.__name__)
