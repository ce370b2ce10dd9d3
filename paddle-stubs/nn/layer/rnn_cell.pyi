# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.nn.layer.rnn import GRUCell as GRUCell, LSTMCell as LSTMCell, RNNCellBase as RNNCellBase, SimpleRNNCell as SimpleRNNCell
