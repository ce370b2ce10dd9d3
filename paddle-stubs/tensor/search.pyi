# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.tensor.search import (
    argmax as argmax,
    argmin as argmin,
    argsort as argsort,
    index_sample as index_sample,
    index_select as index_select,
    masked_select as masked_select,
    nonzero as nonzero,
    sort as sort,
    topk as topk,
    where as where,
)
