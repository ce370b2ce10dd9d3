"""Files on HDFS, and programs with distributed lookup tables (`fluid.contrib.utils`)."""

from ...base import missing
from . import hdfs_utils, lookup_table_utils
from .hdfs_utils import HDFSClient, multi_download, multi_upload
from .lookup_table_utils import get_inference_model

__all__ = [
    "HDFSClient",
    "get_inference_model",
    "hdfs_utils",
    "lookup_table_utils",
    "multi_download",
    "multi_upload",
]

__getattr__ = missing.reporter(__name__)
