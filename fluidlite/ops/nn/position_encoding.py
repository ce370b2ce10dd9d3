"""Sines and cosines of the place in a sequence (Vaswani et al. 2017, "Attention Is All You Need")."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backend.constants import constant
from ..grad_pairs import register_pair
from ..registry import Levels, LodArray, OpView, Sequences, grad_name
from ..sequence import Lods, deep, input_lod, levels, ranges

DX, DOUT = grad_name("X"), grad_name("Out")


def _padded(steps: int, width: int) -> Any:
    """The encoding of positions 0 to `steps` - 1."""
    return _encoded(np.arange(steps), width)


def _encoded(places: Any, width: int) -> Any:
    """[places, width]: sines in the first half, cosines in the second, from wavelength 2 pi to 20,000 pi."""
    half = width // 2
    waves = 10000.0 ** (np.arange(half) / (half - 1) if half > 1 else np.ones(half))
    angles = places[:, None] / waves
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def _add(xp: Any, X: Any, alpha: float, beta: float, lod: Lods) -> Any:
    if X.ndim == 3:
        encoded = constant(xp, _padded, *X.shape[1:])
    else:
        offsets = levels("add_position_encoding", lod, "X")[-1]
        places = ranges(np.zeros(len(offsets) - 1, np.int64), np.diff(offsets))
        encoded = xp.asarray(_encoded(places, X.shape[-1]))
    return LodArray(X * alpha + (beta * encoded).astype(X.dtype), input_lod(lod, "X"))


def _add_grad(xp: Any, Out_grad: Any, alpha: float, lod: Lods) -> Any:
    return LodArray(Out_grad * alpha, input_lod(lod, DOUT))


def _infer(op: OpView) -> None:
    shape = op.shape("X")
    if len(shape) not in (2, 3):
        raise op.fail(f"X must be [batch, time, width] or [rows, width] with sequences, got {list(shape)}")
    if shape[-1] % 2 and shape[-1] >= 0:
        raise op.fail(f"the last dimension of X must be even, got shape {list(shape)}")
    if len(shape) == 2:
        deep(op, "X")
    op.set("Out", shape, op.dtype("X"))
    op.carry("Out", op.lod("X"))


def _infer_back(op: OpView) -> None:
    op.set(DX, op.shape(DOUT), op.dtype(DOUT))
    op.carry(DX, op.lod(DOUT))


register_pair(
    "add_position_encoding",
    ("X",),
    _add,
    _add_grad,
    _infer,
    "alpha times X, and beta times sines and cosines of the place in the sequence.",
    attrs={"alpha": 1.0, "beta": 1.0},
    keep=(),
    sequences=Sequences(levels=Levels("X"), takes_lod=True, inferred=True),
    infer_back=_infer_back,
)
