# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    hdfs_utils as hdfs_utils,
    lookup_table_utils as lookup_table_utils,
)
from fluidlite.fluid.contrib.utils import (
    HDFSClient as HDFSClient,
    get_inference_model as get_inference_model,
    load_persistables_for_increment as load_persistables_for_increment,
    multi_download as multi_download,
    multi_upload as multi_upload,
)
