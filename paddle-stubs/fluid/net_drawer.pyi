# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.graphviz import (
    GRAPH_ID as GRAPH_ID,
    GRAPH_STYLE as GRAPH_STYLE,
    Graph as Graph,
    Node as Node,
    OP_STYLE as OP_STYLE,
    VAR_STYLE as VAR_STYLE,
    crepr as crepr,
    draw_edge as draw_edge,
    draw_graph as draw_graph,
    draw_node as draw_node,
    logger as logger,
    parse_graph as parse_graph,
    unique_id as unique_id,
)
from fluidlite.fluid.small_modules import (
    get_logger as get_logger,
)
from fluidlite.framework import (
    Operator as Operator,
    Program as Program,
)
