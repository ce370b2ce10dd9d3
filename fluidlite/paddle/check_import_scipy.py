"""`paddle.check_import_scipy`: whether SciPy can be loaded on Windows, which Paddle asks when it is imported."""

from __future__ import annotations

import os

__all__ = ["check_import_scipy"]


def check_import_scipy(OsName: str) -> None:
    """Raise ImportError with a hint if `OsName` is 'nt' and SciPy's libraries cannot be loaded.

    Nothing here needs SciPy, so that it is asked for on Windows only. Follows `paddle.check_import_scipy`.
    """
    if OsName == "nt" and os.name == "nt":
        try:
            __import__("scipy.io")
        except ImportError as error:
            raise ImportError(f"{error}; the Visual C++ runtime may be missing") from error
