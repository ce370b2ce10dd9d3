"""`fluid.log_helper`: loggers that write to stderr by themselves."""

from __future__ import annotations

import logging

from ..base import missing

__all__ = ["get_logger"]


def get_logger(name: str, level: int, fmt: str | None = None) -> logging.Logger:
    """The logger `name` at `level`, with one handler that writes to stderr in the format `fmt`."""
    logger = logging.getLogger(name)
    logger.setLevel(level)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(fmt) if fmt else None)
        logger.addHandler(handler)
    logger.propagate = False
    return logger


__getattr__ = missing.reporter(__name__)
