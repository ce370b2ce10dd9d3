"""Updates of parameters."""

from . import adam, average, layerwise, proximal, updates  # noqa: F401
