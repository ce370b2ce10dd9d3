"""The kind of parameter servers (`fluid.incubate.fleet.parameter_server.version`)."""

from ....base import missing
from ..base.fleet_base import Mode

__all__ = ["is_transpiler"]

BUILD_MODE = Mode.TRANSPILER


def is_transpiler() -> bool:
    """True: servers are programs that a transpiler makes, and not those of PSLib."""
    return BUILD_MODE == Mode.TRANSPILER


__getattr__ = missing.reporter(__name__)
