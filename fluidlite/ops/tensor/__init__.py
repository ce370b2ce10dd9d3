"""Making, joining, parting, moving and indexing tensors; random numbers; sparse rows."""

from . import (  # noqa: F401
    fill,
    gather,
    indexing,
    join,
    manipulation,
    pad,
    random_,
    random_choice,
    random_crop,
    search,
    selected_rows,
    slice,
    unique,
    views,
)
