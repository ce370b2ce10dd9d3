"""What programs have to do with their surroundings: feeds, fetches, readers, printing, Python functions."""

from . import assert_, feed_fetch, print_, py_func, reader  # noqa: F401
