"""How good predictions are."""

from . import alignment, detection_map, metric, ranking  # noqa: F401
