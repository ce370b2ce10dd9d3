# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
)
from fluidlite.log_helper import (
    get_logger as get_logger,
)
from fluidlite.net_drawer import (
    GRAPH_ID as GRAPH_ID,
    GRAPH_STYLE as GRAPH_STYLE,
    Graph as Graph,
    OP_STYLE as OP_STYLE,
    VAR_STYLE as VAR_STYLE,
    draw_edge as draw_edge,
    draw_graph as draw_graph,
    draw_node as draw_node,
    logger as logger,
    parse_graph as parse_graph,
    unique_id as unique_id,
)
