"""`feed` and `fetch`: where a saved inference program takes its inputs and gives its outputs; `get_places`.

They mark the two ends of a program file and compute nothing: `Executor.run` feeds and fetches by name.
"""

from __future__ import annotations

from ..registry import Effects, OpDef, register

ENDS = frozenset({"feed", "fetch"})
"""The types of operators that mark the ends of a program."""

register(
    OpDef(
        "feed",
        inputs=("X",),
        outputs=("Out",),
        attrs={"col": 0},
        effects=Effects(host=True),
        doc="Names `Out` as input number `col` of a saved inference program; X holds all inputs.",
    )
)
register(
    OpDef(
        "fetch",
        inputs=("X",),
        outputs=("Out",),
        attrs={"col": 0},
        effects=Effects(host=True),
        doc="Names `X` as output number `col` of a saved inference program; Out holds all outputs.",
    )
)
register(
    OpDef(
        "get_places",
        outputs=("Out",),
        attrs={"device_count": 0, "device_type": "AUTO"},
        effects=Effects(host=True),
        doc="Names a list of devices, which nothing uses any more.",
    )
)
