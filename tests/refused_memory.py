"""A plugin of pytest that runs each test with its first request for memory refused, then the second, the fourth, ...

    scripts/sanitize.sh refused [TESTS...]

Requests are those of fluidlite's extensions and of NumPy (refused_memory.cc, built as the file REFUSED). A test
may fail then, and because many tests cannot be repeated its end is not looked at: what is looked for is that nothing
crashes, reads what has been freed, or goes on with what is not there. The sanitizers end the process, and the last
line of the file REFUSED_LOG names the test and the request.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Any

import pytest

MOST = 1 << 16
"""After this many requests none is refused."""


def _refuse() -> Any:
    """The function of the library: refuses a request from now on, and returns how many there have been."""
    try:
        refuse = ctypes.CDLL(os.environ.get("REFUSED", "refused_memory.so")).fl_refuse
    except OSError as error:
        raise pytest.UsageError(f"REFUSED must name what is built of refused_memory.cc: {error}") from None
    refuse.restype, refuse.argtypes = ctypes.c_long, [ctypes.c_long]
    return refuse


refuse = _refuse()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    which, made = 1, MOST
    with open(os.environ.get("REFUSED_LOG", os.devnull), "a", encoding="utf8") as log:
        while which <= min(made, MOST):
            print(f"{pyfuncitem.nodeid}: request {which}", file=log, flush=True)
            with contextlib.suppress(Exception, pytest.fail.Exception, pytest.skip.Exception):
                refuse(which)
                try:
                    pyfuncitem.obj(**arguments)
                finally:
                    made = refuse(0)
            which *= 2
    return True
