# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.tensor.linalg import (
    addmm as addmm,
    bincount as bincount,
    bmm as bmm,
    cholesky as cholesky,
    cross as cross,
    diagonal as diagonal,
    dist as dist,
    dot as dot,
    einsum as einsum,
    histogram as histogram,
    inner as inner,
    inverse as inverse,
    kron as kron,
    matmul as matmul,
    mm as mm,
    mv as mv,
    norm as norm,
    outer as outer,
    trace as trace,
)
