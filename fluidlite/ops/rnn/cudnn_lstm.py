"""Layers of long short-term memories over padded batches, time first: `cudnn_lstm`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...backend.functions import matmul
from ..grad_pairs import register_pair
from ..host_fallback import hosted
from ..infer import require_same_dtype
from ..native import typed_call
from ..nn.activation import stable_sigmoid
from ..registry import Call, OpView, Sequences, grad_name


class _Weights:
    """Parts of the flat weights of one layer and direction: for the input [4 * size, width], for the state [4 * size,
    size], and the sum of two biases. Gates stand in the order input, forget, candidate, output.
    """

    def __init__(self, flat: Any, at: int, bias_at: int, size: int, width: int) -> None:
        self.at, self.bias_at, self.wide = at, bias_at, 4 * size
        self.end, self.bias_end = at + self.wide * (width + size), bias_at + 2 * self.wide
        self.split = at + self.wide * width
        self.given = flat[at : self.split].reshape(self.wide, width)
        self.state = flat[self.split : self.end].reshape(self.wide, size)
        self.bias = flat[bias_at : bias_at + self.wide] + flat[bias_at + self.wide : self.bias_end]

    def put(self, flat: Any, given: Any, state: Any, bias: Any) -> None:
        """Their gradients as parts of that of the flat weights."""
        flat[self.at : self.split] = given.reshape(-1)
        flat[self.split : self.end] = state.reshape(-1)
        flat[self.bias_at : self.bias_at + self.wide] = bias
        flat[self.bias_at + self.wide : self.bias_end] = bias


def _widths(input_size: int, size: int, num_layers: int, ways: int) -> Iterator[int]:
    """The width of the input of each layer and direction."""
    for k in range(num_layers * ways):
        yield input_size if k < ways else size * ways


def _elements(input_size: int, size: int, num_layers: int, ways: int) -> int:
    return sum(4 * size * (width + size + 2) for width in _widths(input_size, size, num_layers, ways))


def _all_weights(flat: Any, input_size: int, size: int, num_layers: int, ways: int) -> list[_Weights]:
    """The weights of each layer and direction; `flat` has all matrices first, then all biases."""
    result: list[_Weights] = []
    at, bias_at = 0, _elements(input_size, size, num_layers, ways) - 8 * size * num_layers * ways
    for width in _widths(input_size, size, num_layers, ways):
        result.append(_Weights(flat, at, bias_at, size, width))
        at, bias_at = result[-1].end, result[-1].bias_end
    return result


class _Pass:
    """The forward pass of one layer in one direction over a batch."""

    def __init__(self, x: Any, h0: Any, c0: Any, weights: _Weights, times: range) -> None:
        self.x, self.weights, self.times = x, weights, times
        sums = matmul(np, x, weights.given.T) + weights.bias
        size = h0.shape[1]
        self.gates, self.cells = np.empty_like(sums), np.empty((*x.shape[:2], size), x.dtype)
        self.states, self.before, self.before_cell = (np.empty_like(self.cells) for _ in range(3))
        h, c = h0, c0
        for t in times:
            self.before[t], self.before_cell[t] = h, c
            step = sums[t] + matmul(np, h, weights.state.T)
            for k in range(4):
                part = slice(k * size, (k + 1) * size)
                self.gates[t][:, part] = (
                    np.tanh(step[:, part]) if k == 2 else stable_sigmoid(np, step[:, part])
                )
            i, f, g, o = np.split(self.gates[t], 4, axis=1)
            c = f * c + i * g
            h = o * np.tanh(c)
            self.cells[t], self.states[t] = c, h
        self.last = h, c

    def back(self, d_out: Any, d_h: Any, d_c: Any, flat: Any) -> tuple[Any, Any, Any]:
        """The gradients of input, initial state and initial cell; those of the weights are written to `flat`."""
        d_sums = np.empty_like(self.gates)
        for t in reversed(self.times):
            i, f, g, o = np.split(self.gates[t], 4, axis=1)
            shown = np.tanh(self.cells[t])
            d_h = d_h + d_out[t]
            d_c = d_c + d_h * o * (1 - shown * shown)
            parts = [
                d_c * g * i * (1 - i),
                d_c * self.before_cell[t] * f * (1 - f),
                d_c * i * (1 - g * g),
                d_h * shown * o * (1 - o),
            ]
            d_sums[t] = np.concatenate(parts, axis=1)
            d_h, d_c = matmul(np, d_sums[t], self.weights.state), d_c * f
        rows = d_sums.reshape(-1, d_sums.shape[2])
        given, before = (a.reshape(-1, a.shape[2]) for a in (self.x, self.before))
        self.weights.put(flat, matmul(np, rows.T, given), matmul(np, rows.T, before), rows.sum(axis=0))
        return matmul(np, d_sums, self.weights.given), d_h, d_c


class _Network:
    """All passes over a batch, with dropout between the layers."""

    def __init__(
        self, Input: Any, InitH: Any, InitC: Any, W: Any, hidden_size: int, num_layers: int, **attrs: Any
    ) -> None:
        self.ways = 2 if attrs["is_bidirec"] else 1
        dropout = _dropout(W, attrs["dropout_prob"], attrs["seed"], attrs["is_test"])
        found = _all_weights(W.reshape(-1), Input.shape[2], hidden_size, num_layers, self.ways)
        self.passes: list[list[_Pass]] = []
        self.masks: list[Any] = []
        x = Input
        for layer in range(num_layers):
            self.masks.append(dropout(layer, x.shape) if layer else None)
            x = x * self.masks[layer] if layer else x
            here = []
            for way in range(self.ways):
                k, times = layer * self.ways + way, range(len(x))
                here.append(_Pass(x, InitH[k], InitC[k], found[k], times[::-1] if way else times))
            self.passes.append(here)
            x = np.concatenate([one.states for one in here], axis=2)
        self.out = x

    def last(self, which: int) -> Any:
        return np.stack([one.last[which] for layer in self.passes for one in layer])


def _scrambled(numbers: Any) -> Any:
    """A permutation of 32-bit numbers, as in `_ext/kernels/masks.h`."""
    for right, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        numbers = (numbers ^ (numbers >> np.uint32(right))) * np.uint32(factor)
    return numbers ^ (numbers >> np.uint32(16))


def _dropout(W: Any, prob: float, seed: int, is_test: bool) -> Any:
    """Draws the mask of what a layer gets. They follow from the weights, which each step of training changes: the
    gradient, which is given none of them, draws the same.
    """
    words = np.ascontiguousarray(W).view(np.uint32)
    places = np.arange(1, 2 * len(words), 2, dtype=np.uint32)
    key = _scrambled((words * places).sum(keepdims=True, dtype=np.uint32) ^ np.uint32(seed & 0xFFFFFFFF))

    def draw(layer: int, shape: tuple[int, ...]) -> Any:
        if is_test or prob == 0:
            return np.ones(shape, W.dtype)
        mine = _scrambled(key + np.uint32(layer))
        drawn = _scrambled(_scrambled(np.arange(np.prod(shape), dtype=np.uint32)) ^ mine) >> np.uint32(8)
        kept = drawn.reshape(shape) >= int(np.float32(prob) * np.float32(2**24))
        return kept / W.dtype.type(1 - np.float32(prob)) if prob < 1 else np.zeros(shape, W.dtype)

    return draw


@hosted
def _lstm(xp: Any, Input: Any, InitH: Any, InitC: Any, W: Any, **attrs: Any) -> Any:
    made = _Network(Input, InitH, InitC, W, **attrs)
    return made.out, made.last(0), made.last(1)


@hosted
def _lstm_grad(
    xp: Any,
    Input: Any,
    InitH: Any,
    InitC: Any,
    W: Any,
    Out_grad: Any,
    last_h_grad: Any,
    last_c_grad: Any,
    **attrs: Any,
) -> Any:
    network, size = _Network(Input, InitH, InitC, W, **attrs), attrs["hidden_size"]
    d_flat, d_h, d_c = np.zeros(W.size, W.dtype), np.empty_like(InitH), np.empty_like(InitC)
    d_out = Out_grad
    for layer in reversed(range(attrs["num_layers"])):
        d_in = 0
        for way, one in enumerate(network.passes[layer]):
            k = layer * network.ways + way
            mine = d_out[:, :, way * size : (way + 1) * size]
            d_x, d_h[k], d_c[k] = one.back(mine, last_h_grad[k], last_c_grad[k], d_flat)
            d_in = d_in + d_x
        d_out = d_in * network.masks[layer] if layer else d_in
    return d_out, d_h, d_c, d_flat.reshape(W.shape)


def _infer(op: OpView) -> None:
    shape, size, layers = op.shape("Input"), op.attr("hidden_size"), op.attr("num_layers")
    ways = 2 if op.attr("is_bidirec") else 1
    if len(shape) != 3:
        raise op.fail(f"Input must have 3 dimensions (time, batch, width), got {list(shape)}")
    if shape[2] >= 0:
        elements, given = _elements(shape[2], size, layers, ways), op.shape("W")
        if len(given) != 1 or given[0] != elements:
            raise op.fail(f"W must be of shape {[elements]} for this Input, got {list(given)}")
    for slot in ("InitH", "InitC"):
        first = op.shape(slot)
        wanted = (layers * ways, shape[1], size)
        if op.exact and first != wanted:
            raise op.fail(f"{slot} must be of shape {list(wanted)}, got {list(first)}")
    dtype = require_same_dtype(op, "Input", "InitH", "InitC", "W")
    op.set("Out", (*shape[:2], size * ways), dtype)
    for out in ("last_h", "last_c"):
        op.set(out, op.shape("InitH" if out == "last_h" else "InitC"), dtype)


def _native_call(op: OpView, kernel: str, slots: tuple[str, ...]) -> Call | None:
    size, layers = op.attr("hidden_size"), op.attr("num_layers")
    ways, shape = 2 if op.attr("is_bidirec") else 1, op.shape("Input")
    ints = [*shape, size, layers, ways, _elements(shape[2], size, layers, ways)]
    prob = 0.0 if op.attr("is_test") else op.attr("dropout_prob")
    return typed_call(op, kernel, ("Input", "InitH", "InitC", "W"), slots, [*ints, op.attr("seed")], [prob])


def _native(op: OpView) -> Call | None:
    return _native_call(op, "cudnn_lstm", ("Out", "last_h", "last_c"))


def _native_grad(op: OpView) -> Call | None:
    slots = ("Out", "last_h", "last_c", "Input", "InitH", "InitC", "W")
    return _native_call(op, "cudnn_lstm_grad", tuple(map(grad_name, slots)))


register_pair(
    "cudnn_lstm",
    ("Input", "InitH", "InitC", "W", "Cache?#"),
    _lstm,
    _lstm_grad,
    _infer,
    "Layers of long short-term memories, in one or both directions, with dropout between them.",
    outputs=("Out", "last_h", "last_c"),
    attrs={
        "max_len": 20,
        "dropout_prob": 0.0,
        "is_bidirec": False,
        "input_size": 10,
        "hidden_size": 100,
        "num_layers": 1,
        "is_test": False,
        "seed": -1,
    },
    keep_out=("Out",),
    no_grad=("Cache",),
    native=(_native, _native_grad),
    sequences=Sequences(source=None),
)
