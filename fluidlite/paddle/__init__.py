"""The `paddle` namespace of Fluid 1.8: `paddle.fluid`, `paddle.reader`, `paddle.dataset`, `paddle.batch`.

Scripts get it by `import paddle` once the import hook is installed (`python -m fluidlite SCRIPT`, or
`import fluidlite.as_paddle`).
"""

import fluidlite as fluid

from .. import __version__ as fluidlite_version
from .. import dataset
from ..base import missing
from . import reader, version
from .batch import batch
from .version import full_version as __version__

__all__ = ["__version__", "batch", "dataset", "fluid", "fluidlite_version", "reader", "version"]

__getattr__ = missing.reporter(__name__)
