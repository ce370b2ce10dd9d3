# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
)
from fluidlite.data import (
    data as data,
)
from fluidlite.data_feeder import (
    check_dtype as check_dtype,
    check_type as check_type,
)
from fluidlite.layer_helper import (
    LayerHelper as LayerHelper,
)
