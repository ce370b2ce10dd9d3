"""Training, evaluating and describing models in few lines (`paddle.Model`, `paddle.summary`)."""

from . import callbacks
from .model import Model
from .summary import summary

__all__ = ["Model", "callbacks", "summary"]
