# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    paddle as paddle,
)
from fluidlite.fluid.small_modules import (
    enter_local_scope as enter_local_scope,
    find_var as find_var,
    get_cur_scope as get_cur_scope,
    leave_local_scope as leave_local_scope,
    scoped_function as scoped_function,
    var as var,
)
