# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.contrib.utils import (
    HDFSClient as HDFSClient,
    getfilelist as getfilelist,
    multi_download as multi_download,
    multi_upload as multi_upload,
)
from fluidlite.fluid.small_modules import (
    get_logger as get_logger,
)
