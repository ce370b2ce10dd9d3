"""The namespace of helpers that rewritten code calls as `_d2s_`: conditions, loops, calls, and the values in them."""

import sys

from . import calls
from .branching import and_, choose, compare, if_, not_, or_
from .calls import assert_, call, known, numpy, raised, result, rows, shape
from .containers import at
from .looping import for_, while_

__all__ = [
    "and_",
    "assert_",
    "at",
    "call",
    "choose",
    "compare",
    "for_",
    "if_",
    "known",
    "not_",
    "numpy",
    "or_",
    "raised",
    "result",
    "rows",
    "shape",
    "while_",
]

calls.helpers = sys.modules[__name__]
