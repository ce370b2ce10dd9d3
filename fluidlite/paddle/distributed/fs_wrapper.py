"""File systems (`paddle.distributed.fs_wrapper`)."""

from ...base import missing
from ...distributed.files import BDFS, FS, LocalFS

__all__ = ["BDFS", "FS", "LocalFS"]

__getattr__ = missing.reporter(__name__)
