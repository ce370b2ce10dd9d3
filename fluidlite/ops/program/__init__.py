"""What programs have to do with their surroundings: feeds, fetches, readers, printing, functions, other processes."""

from . import assert_, collective, feed_fetch, print_, py_func, reader, save_load  # noqa: F401
