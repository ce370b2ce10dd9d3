"""Arithmetic, comparisons, functions element by element, reductions, products of matrices."""

from . import (  # noqa: F401
    cast,
    clip,
    compare,
    distances,
    elementwise,
    functions,
    gemm,
    linalg,
    matmul,
    pointwise,
    products,
    reduce,
    row_pairs,
    sign,
)
