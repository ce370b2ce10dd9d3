# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.nn.layer.rnn import (
    BiRNN as BiRNN,
    GRU as GRU,
    LSTM as LSTM,
    RNN as RNN,
    SimpleRNN as SimpleRNN,
)
