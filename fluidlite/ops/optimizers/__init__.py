"""Updates of parameters."""

from . import adam, average, compressed, layerwise, proximal, updates  # noqa: F401
