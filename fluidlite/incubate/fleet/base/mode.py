"""The kinds of `fleet` (`fluid.incubate.fleet.base.mode`)."""

from __future__ import annotations

from ....base import missing

__all__ = ["Mode"]


class Mode:
    """TRANSPILER: parameter servers; PSLIB: those of Baidu's PSLib; COLLECTIVE: workers that exchange gradients."""

    TRANSPILER = 1
    PSLIB = 2
    COLLECTIVE = 3


__getattr__ = missing.reporter(__name__)
