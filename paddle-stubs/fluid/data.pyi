# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.data import (
    data as data,
)
from fluidlite.fluid.data_feeder import (
    check_dtype as check_dtype,
    check_type as check_type,
)
from fluidlite.fluid.layer_helper import (
    LayerHelper as LayerHelper,
)
