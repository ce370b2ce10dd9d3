"""Switches that the environment or the command line set."""

from __future__ import annotations

import os

_DEVICES = ("auto", "cpu", "gpu")
_device: str | None = None


def device() -> str:
    """'auto', 'cpu' or 'gpu': what `CUDAPlace` may mean (`--device`, FLUIDLITE_REQUIRE_GPU)."""
    if _device is not None:
        return _device
    return "gpu" if os.environ.get("FLUIDLITE_REQUIRE_GPU", "0") not in ("", "0") else "auto"


def set_device(name: str) -> None:
    """Choose the device policy; raises ValueError for an unknown name."""
    global _device
    if name not in _DEVICES:
        raise ValueError(f"device must be one of {', '.join(_DEVICES)}, got {name!r}")
    _device = name


_ENGINES = ("plan", "interpret")
_engine: str | None = None


def engine() -> str:
    """'plan' or 'interpret': how executors run programs (FLUIDLITE_ENGINE); plans fall back to the interpreter."""
    return _engine if _engine is not None else os.environ.get("FLUIDLITE_ENGINE", "plan")


def set_engine(name: str) -> None:
    """Choose how executors run programs; raises ValueError for an unknown name."""
    global _engine
    if name not in _ENGINES:
        raise ValueError(f"engine must be one of {', '.join(_ENGINES)}, got {name!r}")
    _engine = name
