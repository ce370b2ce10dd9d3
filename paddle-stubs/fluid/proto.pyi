# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.proto import (
    AttrType as AttrType,
    BLOCK as BLOCK,
    BLOCKS as BLOCKS,
    BOOLEAN as BOOLEAN,
    BOOLEANS as BOOLEANS,
    BlockDesc as BlockDesc,
    FLOAT as FLOAT,
    FLOATS as FLOATS,
    INT as INT,
    INTS as INTS,
    LONG as LONG,
    LONGS as LONGS,
    OpDesc as OpDesc,
    OpProto as OpProto,
    ProgramDesc as ProgramDesc,
    STRING as STRING,
    STRINGS as STRINGS,
    VarDesc as VarDesc,
    VarType as VarType,
    Version as Version,
)
