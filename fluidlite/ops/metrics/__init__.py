"""How good predictions are."""

from . import alignment, metric  # noqa: F401
