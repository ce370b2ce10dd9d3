# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    layers as layers,
    unique_name as unique_name,
)
from fluidlite.contrib.layers.rnn_impl import (
    BasicGRUUnit as BasicGRUUnit,
    BasicLSTMUnit as BasicLSTMUnit,
    Layer as Layer,
    basic_gru as basic_gru,
    basic_lstm as basic_lstm,
)
from fluidlite.dygraph.layers import (
    LayerObjectHelper as LayerObjectHelper,
)
from fluidlite.layers.control_flow.static_rnn import (
    StaticRNN as StaticRNN,
)
