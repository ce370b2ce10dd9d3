"""The contents of the smallest modules of `paddle`: `version`, `sysconfig`, `check_import_scipy`, `regularizer`;
`ParamAttr`.

`paddle.version` is the release of Paddle whose API this package follows, not a version of this package.
"""

from __future__ import annotations

import os
from typing import Any

from ..base.version import FOLLOWED
from ..fluid import param_attr
from ..fluid.regularizer import L1DecayRegularizer, L2DecayRegularizer

full_version = FOLLOWED
major, minor, patch = full_version.split(".")
rc = "0"
istaged = True
commit = "fluidlite"
with_mkl = "OFF"


def mkl() -> str:
    """'OFF': this package does not come with MKL (`paddle.version.mkl`)."""
    return with_mkl


def show() -> None:
    """Print the release whose API is followed and the version of this package (`paddle.version.show`)."""
    from .. import __version__

    print(f"full_version: {full_version} (API followed by fluidlite {__version__})")
    print(f"major: {major}\nminor: {minor}\npatch: {patch}\nrc: {rc}")


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def get_include() -> str:
    """The folder of headers (`paddle.sysconfig.get_include`): those of kernels."""
    return os.path.join(_PACKAGE, "_ext")


def get_lib() -> str:
    """The folder of libraries (`paddle.sysconfig.get_lib`): that of the extensions."""
    return os.path.join(_PACKAGE, "_ext")


def check_import_scipy(OsName: str) -> None:
    """Raise ImportError with a hint if `OsName` is 'nt' and SciPy's libraries cannot be loaded.

    Nothing here needs SciPy, so that it is asked for on Windows only. Follows `paddle.check_import_scipy`.
    """
    if OsName == "nt" and os.name == "nt":
        try:
            __import__("scipy.io")
        except ImportError as error:
            raise ImportError(f"{error}; the Visual C++ runtime may be missing") from error


class ParamAttr(param_attr.ParamAttr):
    """Name, initial value and training of a parameter (`paddle.ParamAttr`).

    Arguments as of `fluid.ParamAttr`, and `need_clip`: whether the optimizer's `grad_clip` is for this parameter too.
    """

    def __init__(
        self,
        name: str | None = None,
        initializer: Any = None,
        learning_rate: float = 1.0,
        regularizer: Any = None,
        trainable: bool = True,
        do_model_average: bool = True,
        need_clip: bool = True,
    ) -> None:
        super().__init__(name, initializer, learning_rate, regularizer, trainable, do_model_average)
        self.need_clip = need_clip

    def _to_kwargs(self, with_initializer: bool = False) -> dict[str, Any]:
        return {**super()._to_kwargs(with_initializer), "need_clip": self.need_clip}


class L1Decay(L1DecayRegularizer):
    """The sum of magnitudes times `coeff`: adds coeff * sign(parameter) to gradients (`paddle.regularizer.L1Decay`)."""

    def __init__(self, coeff: float = 0.0) -> None:
        super().__init__(coeff)


class L2Decay(L2DecayRegularizer):
    """Half the sum of squares times `coeff`: adds coeff * parameter to gradients (`paddle.regularizer.L2Decay`)."""

    def __init__(self, coeff: float = 0.0) -> None:
        super().__init__(coeff)
