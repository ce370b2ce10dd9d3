# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.nn.layer.rnn import (
    BiRNN as BiRNN,
    GRU as GRU,
    GRUCell as GRUCell,
    LSTM as LSTM,
    LSTMCell as LSTMCell,
    RNN as RNN,
    RNNCellBase as RNNCellBase,
    SimpleRNN as SimpleRNN,
    SimpleRNNCell as SimpleRNNCell,
)
