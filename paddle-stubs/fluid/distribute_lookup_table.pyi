# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.small_modules import (
    LOOKUP_TABLE_TYPE as LOOKUP_TABLE_TYPE,
    find_distributed_lookup_table as find_distributed_lookup_table,
    find_distributed_lookup_table_inputs as find_distributed_lookup_table_inputs,
    find_distributed_lookup_table_outputs as find_distributed_lookup_table_outputs,
)
