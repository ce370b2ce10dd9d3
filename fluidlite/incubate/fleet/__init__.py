"""Training with several processes (`fluid.incubate.fleet`)."""

from ...base import missing

__all__ = ["base", "collective", "parameter_server"]

__getattr__ = missing.reporter(__name__, lazy={"base": "", "collective": "", "parameter_server": ""})
