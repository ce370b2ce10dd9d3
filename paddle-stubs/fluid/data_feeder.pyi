# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
)
from fluidlite.data_feeder import (
    check_dtype as check_dtype,
    check_type as check_type,
    check_variable_and_dtype as check_variable_and_dtype,
    convert_dtype as convert_dtype,
)
from fluidlite.framework.mode import (
    in_dygraph_mode as in_dygraph_mode,
)
from fluidlite.framework.program import (
    default_main_program as default_main_program,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
from fluidlite.reader.feeder import BatchedTensorProvider as BatchedTensorProvider
from fluidlite.reader.feeder import DataToLoDTensorConverter as DataToLoDTensorConverter
from fluidlite.reader.feeder import (
    DataFeeder as DataFeeder,
)
