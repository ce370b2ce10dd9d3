"""`fluid.dataloader.dataloader_iter`: how workers of loaders notice the end of their parent."""

import os

from ..base import missing

__all__ = ["MP_INDICES_CHECK_INTERVAL", "ParentWatchDog"]

MP_INDICES_CHECK_INTERVAL = 5
"""Seconds after which a worker of Fluid checks whether its parent still runs."""


class ParentWatchDog:
    """Tells whether the parent process is still the one at construction."""

    def __init__(self) -> None:
        self._parent_pid = os.getppid()
        self._parent_alive = True

    def is_alive(self) -> bool:
        if self._parent_alive:
            self._parent_alive = os.getppid() == self._parent_pid
        return self._parent_alive


__getattr__ = missing.reporter(__name__)
