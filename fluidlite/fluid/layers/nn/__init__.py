"""The layers of networks: activations, convolutions, pooling, normalisation, fully connected layers, images."""

from typing import TYPE_CHECKING

from ....base import missing

if TYPE_CHECKING:
    from .activations import *  # noqa: F403  # noqa: F403
    from .convolution import *  # noqa: F403
    from .dense import *  # noqa: F403  # noqa: F403
    from .normalization import *  # noqa: F403
    from .user_functions import *  # noqa: F403
    from .vision import *  # noqa: F403
else:
    __all__ = missing.public(__name__)

__getattr__, __dir__ = missing.lazy(__name__)
