"""Files on HDFS (`fluid.contrib.utils`)."""

from ...base import missing
from . import hdfs_utils
from .hdfs_utils import HDFSClient, multi_download, multi_upload

__all__ = ["HDFSClient", "hdfs_utils", "multi_download", "multi_upload"]

__getattr__ = missing.reporter(__name__)
