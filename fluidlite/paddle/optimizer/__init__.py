"""Optimizers with the arguments of Paddle 2.0, and schedulers of their learning rate (`paddle.optimizer`).

opt = paddle.optimizer.Adam(0.001, parameters=net.parameters())
loss.backward()
opt.step()
opt.clear_grad()
"""

from . import lr
from .optimizer import SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, Lamb, Momentum, Optimizer, RMSProp

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lamb",
    "Momentum",
    "Optimizer",
    "RMSProp",
    "lr",
]
