# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.graphviz import (
    Edge as Edge,
    Graph as Graph,
    GraphPreviewGenerator as GraphPreviewGenerator,
    Node as Node,
    Rank as Rank,
    crepr as crepr,
)
