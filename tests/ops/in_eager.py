"""Runs one operator and its gradients on eager tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidlite import backend, eager
from fluidlite.base.dtypes import FLOATS, to_vartype
from fluidlite.ops.registry import OpDef

from . import on_device

Slots = dict[str, list[Any]]


def check(
    definition: OpDef,
    inputs: Slots,
    attrs: dict[str, Any],
    outputs: Slots,
    grads: dict[str, list[Any]],
    weights: Slots,
) -> None:
    """Assert that eager tensors give `outputs` and, rounded to the inputs' type, `grads`.

    Everything is done twice: the second time with what was remembered from the first.
    """
    for _ in range(2):
        tensors = {slot: [_tensor(array) for array in items] for slot, items in inputs.items()}
        wanted = [(slot, len(items)) for slot, items in outputs.items() if items]
        made = eager.apply(definition.type, tensors, wanted, attrs)
        flat = list(made) if isinstance(made, tuple) else [made]
        by_slot: dict[str, list[eager.Tensor]] = {}
        for slot, count in wanted:
            by_slot[slot], flat = flat[:count], flat[count:]
            for tensor, want in zip(by_slot[slot], outputs[slot], strict=True):
                message = f"{definition.type}, {slot}, eager"
                assert tensor.array.shape == want.shape and tensor.array.dtype == want.dtype, message
                # Without arguments it would be the mode that says where.
                there = on_device.active() and any(inputs.values())
                assert backend.on_device(tensor.array) == there, f"{message}: on another device"
                if want.size:
                    np.testing.assert_allclose(tensor.numpy(), want, rtol=2e-5, atol=1e-6, err_msg=message)
        if not grads:
            continue
        pairs = [
            (tensor, eager.Tensor(on_device.put(np.ascontiguousarray(weight, tensor.array.dtype))))
            for slot, items in weights.items()
            for tensor, weight in zip(by_slot[slot], items, strict=True)
        ]
        eager.backward([tensor for tensor, _ in pairs], [start for _, start in pairs], False)
        for slot, expected in grads.items():
            for tensor, want in zip(tensors[slot], expected, strict=True):
                got = tensor.gradient()
                message = f"gradient of {definition.type}, {slot}, eager"
                assert got is not None and got.shape == want.shape and got.dtype == tensor.array.dtype, (
                    message
                )
                scale = max(1.0, float(np.abs(want).max(initial=0)))
                np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-5 * scale, err_msg=message)


def _tensor(array: Any) -> eager.Tensor:
    array = np.array(array, order="C")
    return eager.Tensor(on_device.put(array), stop_gradient=to_vartype(array.dtype) not in FLOATS)
