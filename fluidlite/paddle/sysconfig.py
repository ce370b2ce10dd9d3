"""`paddle.sysconfig`: where the package keeps what programs in C++ are built with."""

from __future__ import annotations

import os

__all__ = ["get_include", "get_lib"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def get_include() -> str:
    """The folder of headers (`paddle.sysconfig.get_include`): those of kernels."""
    return os.path.join(_PACKAGE, "_ext")


def get_lib() -> str:
    """The folder of libraries (`paddle.sysconfig.get_lib`): that of the extensions."""
    return os.path.join(_PACKAGE, "_ext")
