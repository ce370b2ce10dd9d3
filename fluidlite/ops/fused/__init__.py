"""Operators that passes over programs for inference put in place of several; they have no gradients."""

from . import attention_lstm, dense, rnn, sequences  # noqa: F401
