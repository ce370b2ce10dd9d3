"""The helpers that rewritten functions call: conditions, loops, calls, and the values in them."""

from . import helpers as helpers
