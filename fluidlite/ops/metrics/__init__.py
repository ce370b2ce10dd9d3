"""How good predictions are."""

from . import alignment, detection_map, metric  # noqa: F401
