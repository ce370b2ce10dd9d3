# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.data_feeder import (
    BatchedTensorProvider as BatchedTensorProvider,
    DataFeeder as DataFeeder,
    DataToLoDTensorConverter as DataToLoDTensorConverter,
    Variable as Variable,
    check_dtype as check_dtype,
    check_type as check_type,
    check_variable_and_dtype as check_variable_and_dtype,
    convert_dtype as convert_dtype,
    in_dygraph_mode as in_dygraph_mode,
)
from fluidlite.framework.program import (
    default_main_program as default_main_program,
)
