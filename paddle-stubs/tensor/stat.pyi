# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.tensor.stat import (
    all as all,
    any as any,
    count_nonzero as count_nonzero,
    logsumexp as logsumexp,
    max as max,
    mean as mean,
    median as median,
    min as min,
    numel as numel,
    prod as prod,
    std as std,
    sum as sum,
    var as var,
)
