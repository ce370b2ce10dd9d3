"""Summary table of the layers and parameters of a network."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...base.dtypes import to_numpy
from ...eager import Tensor, no_grad

__all__ = ["summary"]


def summary(net: Any, input_size: Any = None, dtypes: Any = None, input: Any = None) -> dict[str, int]:
    """Print a table of the layers, the shapes they give and their parameters (`paddle.summary`).

    Args:
        net: a Layer.
        input_size: the shape of its input, with the batch (None or -1 counts as 1), or a list of shapes.
        dtypes: the element types of the inputs, float32 by default.
        input: tensors to call it with instead.

    Returns:
        {'total_params': ..., 'trainable_params': ...}.

    Raises:
        ValueError: neither `input_size` nor `input`.
    """
    if input is None:
        inputs = _ones(input_size, dtypes)
    else:
        inputs = list(input) if isinstance(input, (list, tuple)) else [input]
    rows: list[tuple[str, str, str, int]] = []
    numbers: dict[Any, int] = {}
    hooks = []

    def watch(layer: Any) -> None:
        def note(layer: Any, given: Any, result: Any) -> None:
            count = sum(math.prod(parameter.shape) for parameter in layer.parameters(include_sublayers=False))
            kind = type(layer).__name__
            numbers.setdefault(layer, sum(type(one).__name__ == kind for one in numbers) + 1)
            name = f"{kind}-{numbers[layer]}"
            rows.append((name, _shapes(given), _shapes(result), count))

        if not list(layer.children()):
            hooks.append(layer.register_forward_post_hook(note))

    net.apply(watch)
    training = [(layer, layer.training) for layer in net.sublayers(include_self=True)]
    try:
        with no_grad():
            for layer, _ in training:
                layer.training = False
            net(*inputs)
    finally:
        for layer, was in training:
            layer.training = was
        for hook in hooks:
            hook.remove()
    total = sum(math.prod(parameter.shape) for parameter in net.parameters())
    trainable = sum(math.prod(parameter.shape) for parameter in net.parameters() if parameter.trainable)
    print(_table(rows, total, trainable))
    return {"total_params": total, "trainable_params": trainable}


def _ones(input_size: Any, dtypes: Any) -> list[Tensor]:
    """Inputs of ones."""
    if input_size is None:
        raise ValueError("summary needs input_size or input")
    sizes: list[Any] = [input_size] if isinstance(input_size, int) else list(input_size)
    if not all(isinstance(size, (list, tuple)) for size in sizes):
        sizes = [sizes]
    kinds = list(dtypes) if isinstance(dtypes, (list, tuple)) else [dtypes or "float32"] * len(sizes)
    shapes: list[list[int]] = [[1 if size is None or size < 0 else size for size in one] for one in sizes]
    return [Tensor(np.ones(shape, to_numpy(kind))) for shape, kind in zip(shapes, kinds, strict=True)]


def _shapes(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(_shapes(item) for item in value)
    return str(list(value.shape)) if hasattr(value, "shape") else ""


def _table(rows: list[tuple[str, str, str, int]], total: int, trainable: int) -> str:
    heads = ("Layer (type)", "Input Shape", "Output Shape", "Param #")
    cells = [heads, *((name, given, made, f"{count:,}") for name, given, made, count in rows)]
    widths = [max(len(row[column]) for row in cells) + 2 for column in range(4)]
    lines = ["".join(f"{cell:^{width}}" for cell, width in zip(row, widths, strict=True)) for row in cells]
    thin, thick = "-" * sum(widths), "=" * sum(widths)
    end = [f"Total params: {total:,}", f"Trainable params: {trainable:,}"]
    end.append(f"Non-trainable params: {total - trainable:,}")
    return "\n".join([thin, lines[0], thick, *lines[1:], thick, *end, thin])
