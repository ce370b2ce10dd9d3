"""`fluid.dataloader.dataloader_iter`: what workers of loaders watch."""

import os

from ..base import missing

__all__ = ["MP_INDICES_CHECK_INTERVAL", "ParentWatchDog"]

MP_INDICES_CHECK_INTERVAL = 5
"""Seconds after which a worker of Fluid looks whether its parent still runs."""


class ParentWatchDog:
    """Says whether the process that was the parent when this was made still is."""

    def __init__(self) -> None:
        self._parent_pid = os.getppid()
        self._parent_alive = True

    def is_alive(self) -> bool:
        if self._parent_alive:
            self._parent_alive = os.getppid() == self._parent_pid
        return self._parent_alive


__getattr__ = missing.reporter(__name__)
