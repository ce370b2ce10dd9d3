"""Training with several processes (`fluid.incubate.fleet`)."""

from typing import TYPE_CHECKING

from ....base import missing

if TYPE_CHECKING:
    from . import base, collective, parameter_server, utils  # noqa: F401

__all__ = ["base", "collective", "parameter_server", "utils"]

__getattr__, __dir__ = missing.lazy(__name__)
