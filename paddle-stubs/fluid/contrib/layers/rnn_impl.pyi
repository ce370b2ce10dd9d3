# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    layers as layers,
    unique_name as unique_name,
)
from fluidlite.fluid.contrib.layers.rnn_impl import (
    BasicGRUUnit as BasicGRUUnit,
    BasicLSTMUnit as BasicLSTMUnit,
    Layer as Layer,
    basic_gru as basic_gru,
    basic_lstm as basic_lstm,
)
from fluidlite.fluid.dygraph.layers import (
    LayerObjectHelper as LayerObjectHelper,
)
from fluidlite.fluid.layers.control_flow.static_rnn import (
    StaticRNN as StaticRNN,
)
