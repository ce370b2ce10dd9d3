"""Making, joining, parting, moving and indexing tensors; random numbers; sparse rows."""

from . import (  # noqa: F401
    draws,
    fill,
    gather,
    indexing,
    join,
    manip,
    pad,
    random_,
    random_crop,
    search,
    selected_rows,
    slice,
    unique,
    views,
)
