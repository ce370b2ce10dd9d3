"""Arithmetic, comparisons, functions element by element, reductions, products of matrices."""

from . import (  # noqa: F401
    cast,
    clip,
    compare,
    distances,
    elementwise,
    factorize,
    functions,
    gemm,
    matmul,
    pointwise,
    products,
    reduce,
    rows,
    sign,
)
