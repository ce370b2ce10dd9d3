"""Recurrent networks in one operator, and single steps of them."""

from . import cudnn_lstm, gru, lstm, steps, unit  # noqa: F401
