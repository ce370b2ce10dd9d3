"""Gradients on request, and functions with gradients of their own (`paddle.autograd`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..eager import Tensor, autograd, grad, is_recording, no_grad, placing, record_call, recording
from ..framework import tracing

__all__ = ["PyLayer", "PyLayerContext", "backward", "grad", "no_grad"]


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool = False,
) -> None:
    """Add the gradients of all of `tensors` to the leaves they were computed from (`paddle.autograd.backward`).

    Args:
        tensors: one tensor or several.
        grad_tensors: for each the gradient to start from, of its shape; None for ones.
        retain_graph: whether another pass can follow.

    Raises:
        TypeError: something is no tensor. ValueError: `grad_tensors` are not as many as `tensors`, or of another shape.
    """
    sources: list[Any] = list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]
    starts: list[Any] | None = None
    if grad_tensors is not None:
        starts = list(grad_tensors) if isinstance(grad_tensors, (list, tuple)) else [grad_tensors]
        if len(starts) != len(sources):
            raise ValueError(
                f"grad_tensors must hold one gradient for each of {len(sources)} tensors, got {len(starts)}"
            )
    for item in (*sources, *(start for start in starts or () if start is not None)):
        if not isinstance(item, Tensor):
            raise TypeError(f"backward takes tensors, got {type(item).__name__}")
    autograd.backward(sources, starts, retain_graph)


class PyLayerContext:
    """State that `forward` of a `PyLayer` keeps for its `backward`: saved tensors, and attributes it sets."""

    def __init__(self) -> None:
        self._saved: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors; a second call replaces those of the first."""
        self._saved = tensors

    def saved_tensor(self) -> tuple[Any, ...]:
        """The tensors given to `save_for_backward`."""
        return self._saved


class PyLayer:
    """A function of tensors that computes its own gradients (`paddle.autograd.PyLayer`).

    Subclass it with two static methods: `forward(ctx, ...)` returns a tensor or a tuple of them, `backward(ctx, ...)`
    takes a gradient for each of these (zeros for those that were not used) and returns one, or None, for each tensor
    among the arguments of `forward`. Call it by `apply`. It has no second derivatives.
    """

    @staticmethod
    def forward(ctx: PyLayerContext, *args: Any, **kwargs: Any) -> Any:
        """Compute the function; subclasses define it."""
        raise NotImplementedError("a PyLayer defines forward(ctx, ...), a static method")

    @staticmethod
    def backward(ctx: PyLayerContext, *args: Any) -> Any:
        """The gradients of the tensors that `forward` was given; subclasses define it."""
        raise NotImplementedError("a PyLayer defines backward(ctx, ...), a static method")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call `forward` on `args` and `kwargs`, and have `backward` called when gradients arrive.

        Raises TypeError if `forward` returns something but tensors, RuntimeError while a program is traced.
        """
        if tracing.current() is not None:
            raise RuntimeError(
                f"{cls.__name__} computes its gradients in Python, which a traced program (to_static) cannot: keep it "
                "out of the traced function"
            )
        context = PyLayerContext()
        with recording(False):
            result = cls.forward(context, *args, **kwargs)
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        for item in results:
            if not isinstance(item, Tensor):
                raise TypeError(f"forward of {cls.__name__} must return tensors, got {type(item).__name__}")
        given = [item for item in (*args, *kwargs.values()) if isinstance(item, Tensor)]
        if not is_recording() or all(tensor.stop_gradient for tensor in given):
            return result
        # The context may hold the results: wrap them anew, to avoid a reference cycle between tape and context.
        made = [Tensor(item.array) for item in results]
        layouts = [(placing.device_of(item.array), item.array.shape, item.array.dtype) for item in results]
        pending = _Pending(cls, context, given, layouts)
        record_call(pending, given, made, [item.array.dtype.kind == "f" for item in results])
        return type(result)(made) if isinstance(result, (list, tuple)) else made[0]


class _Pending:
    """The tape entry of one call of a PyLayer; called with the gradients of the results."""

    def __init__(
        self,
        layer: type[PyLayer],
        context: PyLayerContext,
        given: list[Tensor],
        results: list[tuple[Any, Any, Any]],
    ) -> None:
        self.layer, self.context, self.results = layer, context, results
        self.shapes = [tensor.array.shape for tensor in given]

    def __call__(self, arriving: Sequence[Any], retain: bool) -> list[Any]:
        with recording(False):
            answer = self.layer.backward(
                self.context,
                *(
                    Tensor(
                        placing.zeros(device, shape, dtype) if gradient is None else placing.dense(gradient)
                    )
                    for gradient, (device, shape, dtype) in zip(arriving, self.results, strict=True)
                ),
            )
        found = list(answer) if isinstance(answer, (list, tuple)) else [answer]
        what = f"backward of {self.layer.__name__}"
        if len(found) != len(self.shapes):
            raise ValueError(
                f"{what} must return a gradient, or None, for each of the {len(self.shapes)} tensors that forward "
                f"takes, got {len(found)}"
            )
        for gradient, shape in zip(found, self.shapes, strict=True):
            if gradient is not None and not isinstance(gradient, Tensor):
                raise TypeError(f"{what} must return tensors, got {type(gradient).__name__}")
            if gradient is not None and gradient.array.shape != shape:
                raise ValueError(
                    f"{what}: the gradient of a tensor of shape {list(shape)} has shape {gradient.shape}"
                )
        return [None if gradient is None else gradient.array for gradient in found]
