# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    paddle as paddle,
)
from fluidlite.dataset.common import (
    DATA_HOME as DATA_HOME,
    cluster_files_reader as cluster_files_reader,
    download as download,
    fetch_all as fetch_all,
    md5file as md5file,
    must_mkdirs as must_mkdirs,
    split as split,
)
