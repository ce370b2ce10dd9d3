"""Parameters as one vector (`paddle.nn.utils`)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ...eager import Tensor, placing
from ..tensor.manipulation import concat, reshape

__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Any], name: str | None = None) -> Any:
    """All elements of eager parameters in a row (`paddle.nn.utils.parameters_to_vector`)."""
    return concat([reshape(parameter, [-1]) for parameter in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any], name: str | None = None) -> None:
    """Overwrite eager parameters with what `parameters_to_vector` gave (`paddle.nn.utils.vector_to_parameters`).

    Raises ValueError if there are more or fewer elements.
    """
    given = list(parameters)
    sizes = [math.prod(parameter.shape) for parameter in given]
    if sum(sizes) != vec.array.size:
        raise ValueError(f"the parameters have {sum(sizes)} elements, the vector {vec.array.size}")
    flat, begin = vec.detach().reshape([-1]).array, 0
    for parameter, size in zip(given, sizes, strict=True):
        parameter.set_value(Tensor(flat[begin : begin + size].reshape(parameter.shape)))
        begin += size


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> float:
    """Scale the gradients of eager parameters, in place, so that their common norm is at most `max_norm`.

    Returns the norm before. Raises RuntimeError if it is not finite and `error_if_nonfinite`. Follows
    `paddle.nn.utils.clip_grad_norm_`.
    """
    grads = _gradients(parameters)
    parts = []
    for grad in grads:
        with placing.computing(grad) as xp:
            sizes = xp.abs(grad)
            parts.append(float(sizes.max() if norm_type == float("inf") else (sizes**norm_type).sum()))
    total = max(parts, default=0.0) if norm_type == float("inf") else float(sum(parts) ** (1.0 / norm_type))
    if error_if_nonfinite and not math.isfinite(total):
        raise RuntimeError(f"the norm of the gradients is {total}")
    share = max_norm / (total + 1e-6)
    if share < 1:
        for grad in grads:
            with placing.computing(grad):
                grad *= grad.dtype.type(share)
    return total


def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Limit each element of the gradients of eager parameters, in place, to [-clip_value, clip_value]
    (`paddle.nn.utils.clip_grad_value_`)."""
    for grad in _gradients(parameters):
        with placing.computing(grad) as xp:
            xp.clip(grad, -clip_value, clip_value, out=grad)


def _gradients(parameters: Any) -> list[Any]:
    """The gradients' own memory, writable."""
    found = []
    for parameter in parameters if isinstance(parameters, (list, tuple)) else [parameters]:
        grad = parameter.grad
        if grad is not None:
            parameter.grad_array = array = placing.duplicate(grad.array)
            found.append(array)
    return found
