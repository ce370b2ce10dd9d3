# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.executor.lod_tensor import (
    create_lod_tensor as create_lod_tensor,
    create_random_int_lodtensor as create_random_int_lodtensor,
)
from fluidlite.fluid import (
    core as core,
)
from fluidlite.reader.feeder import (
    DataToLoDTensorConverter as DataToLoDTensorConverter,
)
