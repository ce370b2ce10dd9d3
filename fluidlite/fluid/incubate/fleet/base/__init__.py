"""Base classes of `fleet` and role makers (`fluid.incubate.fleet.base`)."""

from . import fleet_base, role_maker

__all__ = ["fleet_base", "mode", "role_maker"]
