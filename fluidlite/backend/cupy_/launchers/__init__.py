"""Launchers of the CUDA kernels of operators, a module for each family, and their lookup by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def launcher(name: str) -> Callable[..., Any]:
    """The launcher that an operator names (`Dispatch.cuda`).

    'module.function' is a function of a module of this folder; 'module.make:argument' is what its function `make`
    returns for the text `argument`, for operators that differ in little more than their names.
    """
    path, _, argument = name.partition(":")
    module, _, function = path.rpartition(".")
    found: Callable[..., Any] = getattr(importlib.import_module(f"{__package__}.{module}"), function)
    return found(argument) if argument else found
