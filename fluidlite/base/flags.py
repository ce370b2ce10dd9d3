"""Switches that the environment or the command line set."""

from __future__ import annotations

import os

_ON = ("1", "true", "yes", "t", "y", "on")
_OFF = ("0", "false", "no", "f", "n", "off")


def is_true(text: str) -> bool:
    """Whether the text of a switch of Fluid means True."""
    return text.lower() in _ON


def switch(name: str, default: bool = False) -> bool:
    """Whether an environment variable of fluidlite is on; `default` if it is not set, or empty.

    Raises ValueError for a value that means neither yes nor no.
    """
    text = os.environ.get(name, "").strip()
    if text and text.lower() not in _ON + _OFF:
        raise ValueError(f"the environment variable {name} must be 1 or 0, got {text!r}")
    return is_true(text) if text else default


_DEVICES = ("auto", "cpu", "gpu")
_device: str | None = None


def device() -> str:
    """'auto', 'cpu' or 'gpu': what `CUDAPlace` may mean (`--device`, FLUIDLITE_REQUIRE_GPU)."""
    if _device is not None:
        return _device
    return "gpu" if switch("FLUIDLITE_REQUIRE_GPU") else "auto"


def set_device(name: str) -> None:
    """Choose the device policy; raises ValueError for an unknown name."""
    global _device
    if name not in _DEVICES:
        raise ValueError(f"device must be one of {', '.join(_DEVICES)}, got {name!r}")
    _device = name


_ENGINES = ("plan", "interpret")
_engine: str | None = None
interprets = False
"""Whether `set_engine` asks for the interpreter; steps look at this first, also where they have a plan."""


def engine() -> str:
    """'plan' or 'interpret': how executors run programs (FLUIDLITE_ENGINE); plans fall back to the interpreter.

    Raises ValueError if the variable holds something else.
    """
    if _engine is not None:
        return _engine
    name = os.environ.get("FLUIDLITE_ENGINE") or "plan"
    if name not in _ENGINES:
        raise ValueError(
            f"the environment variable FLUIDLITE_ENGINE must be one of {', '.join(_ENGINES)}, got {name!r}"
        )
    return name


def set_engine(name: str) -> None:
    """Choose how executors run programs; raises ValueError for an unknown name."""
    global _engine, interprets
    if name not in _ENGINES:
        raise ValueError(f"engine must be one of {', '.join(_ENGINES)}, got {name!r}")
    _engine, interprets = name, name == "interpret"


def trainers() -> int:
    """The number of processes that train together (PADDLE_TRAINERS_NUM)."""
    return int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))


def passes_left_out() -> frozenset[str]:
    """The compiler passes to skip on the host (FLUIDLITE_WITHOUT_PASSES, comma-separated), to measure or debug."""
    return frozenset(filter(None, os.environ.get("FLUIDLITE_WITHOUT_PASSES", "").split(",")))


def prints_phases() -> bool:
    """Whether the code after each phase of the compiler is printed to stderr (FLUIDLITE_PRINT_PHASES=1)."""
    return switch("FLUIDLITE_PRINT_PHASES")


def measures_convolutions() -> bool:
    """Whether convolutions on the host are autotuned (FLUIDLITE_MEASURE=1)."""
    return switch("FLUIDLITE_MEASURE")


def allow_tf32() -> bool:
    """Whether products and convolutions on GPUs may round their factors to TF32 (FLUIDLITE_ALLOW_TF32=1)."""
    return switch("FLUIDLITE_ALLOW_TF32")


def cudnn_deterministic() -> bool:
    """Whether cuDNN may only use algorithms whose sums always have the same order (FLAGS_cudnn_deterministic)."""
    return os.environ.get("FLAGS_cudnn_deterministic", "0").lower() in ("1", "true", "yes")


def convolution_workspace() -> int:
    """The limit of a convolution's workspace on a GPU, in bytes (FLAGS_conv_workspace_size_limit, MiB; default 512).

    Raises ValueError if the variable holds no number above 0.
    """
    text = os.environ.get("FLAGS_conv_workspace_size_limit", "512")
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"FLAGS_conv_workspace_size_limit must be a number of MiB above 0, got {text!r}")
    return int(text) << 20


def cuda_graphs() -> bool:
    """Whether steps on GPUs may become CUDA graphs (FLUIDLITE_CUDA_GRAPHS; on by default)."""
    return switch("FLUIDLITE_CUDA_GRAPHS", True)


_checks_finite = is_true(os.environ.get("FLAGS_check_nan_inf", "0"))


def checks_finite() -> bool:
    """Whether programs stop at the first result with NaN or infinities (FLAGS_check_nan_inf, `fluid.set_flags`)."""
    return _checks_finite


def set_checks_finite(value: bool) -> None:
    """Set the result of `checks_finite`."""
    global _checks_finite
    _checks_finite = value
