"""Workers and parameter servers (`fluid.incubate.fleet.parameter_server`)."""

from ....base import missing

__all__ = ["distribute_transpiler", "version"]

__getattr__ = missing.reporter(__name__, lazy={"distribute_transpiler": "", "version": ""})
