"""Updates of parameters."""

from . import adam, average, layerwise, updates  # noqa: F401
