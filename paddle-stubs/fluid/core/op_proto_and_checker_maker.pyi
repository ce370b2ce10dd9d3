# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.core.programs import (
    OpRole as OpRole,
    kOpCreationCallstackAttrName as kOpCreationCallstackAttrName,
    kOpDeviceAttrName as kOpDeviceAttrName,
    kOpNameScopeAttrName as kOpNameScopeAttrName,
    kOpRoleAttrName as kOpRoleAttrName,
    kOpRoleVarAttrName as kOpRoleVarAttrName,
)
