"""Clipping of gradients before optimizers use them (`fluid.clip`)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import callsite
from ..base.dtypes import VarType, to_numpy
from ..base.errors import ArgumentAssertion, ArgumentError, ArgumentTypeError
from ..base.reports.texts import ShowsArguments
from ..eager import Tensor
from ..eager.autograd import no_grad
from ..framework import Block, Operator, Parameter, Program, Variable, default_main_program, mode, name_scope
from ..ops.registry import GRAD
from .layer_helper import run_op

__all__ = [
    "ErrorClipByValue",
    "GradientClipByGlobalNorm",
    "GradientClipByNorm",
    "GradientClipByValue",
    "set_gradient_clip",
]

ParamGrad = tuple[Any, Any]
"""A parameter and its gradient, a Variable or None; or eager tensors."""


class BaseErrorClipAttr(ShowsArguments):
    """Base of the values of `Variable.error_clip`."""

    def _append_clip_op(self, block: Block, grad_name: str) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not say how to clip a gradient")


class ErrorClipByValue(BaseErrorClipAttr):
    """Clips the gradient of a variable on its way back: `variable.error_clip = ErrorClipByValue(max)`.

    `min` is -max by default. Follows `fluid.clip.ErrorClipByValue`.
    """

    def __init__(self, max: float, min: float | None = None) -> None:
        self.max = float(max)
        self.min = -self.max if min is None else float(min)

    def __str__(self) -> str:
        return f"ByValue, min={self.min:f}, max={self.max:f}"

    def _append_clip_op(self, block: Block, grad_name: str) -> None:
        block.append_op(
            type="clip",
            inputs={"X": [grad_name]},
            outputs={"Out": [grad_name]},
            attrs={"min": self.min, "max": self.max},
        )


def error_clip_callback(block: Block, context: dict[str, Any]) -> None:
    """Clip the outputs of gradient operator `context['op']` for variables with an `error_clip`."""
    for name in context["op"].output_arg_names:
        var = block._find_var_recursive(name.split(GRAD)[0])
        clip = var.error_clip if var is not None and GRAD in name else None
        if clip is None:
            continue
        if not isinstance(clip, BaseErrorClipAttr):
            raise ArgumentTypeError(
                f"Variable's error_clip should be an instance of BaseErrorClipAttr or None, "
                f"but {name.split(GRAD)[0]!r} has {clip!r}"
            )
        clip._append_clip_op(block, name)


class GradientClipBase(ShowsArguments):
    """Base of gradient clips: `clip(params_grads)` returns the pairs with clipped gradients.

    `need_clip(param)` selects the parameters; by default all. A user's subclass defines
    `_static_clip(params_grads)` for programs and `_dygraph_clip(params_grads)` for eager tensors, which return pairs.
    """

    def __init__(self, need_clip: Callable[[Parameter], bool] | None = None) -> None:
        if need_clip is not None and not callable(need_clip):
            raise ArgumentTypeError(
                f"need_clip must be a function of a parameter that returns True or False, got {need_clip!r}"
            )
        self._need_clip_func = need_clip

    def __call__(self, params_grads: Sequence[ParamGrad]) -> list[ParamGrad]:
        if any(isinstance(grad, Tensor) for _, grad in params_grads):
            return list(self._dygraph_clip(params_grads))
        if any(getattr(param, "gradient_clip_attr", None) is not None for param, _ in params_grads):
            callsite.warn(
                "'set_gradient_clip' has no effect on this optimizer, because it was given 'grad_clip'"
            )
        return list(self._static_clip(params_grads))

    @property
    def _is_eager(self) -> bool:
        """Whether eager gradients are clipped by a user's subclass."""
        return type(self)._dygraph_clip is not GradientClipBase._dygraph_clip

    def _dygraph_clip(self, params_grads: Sequence[ParamGrad]) -> list[ParamGrad]:
        """The pairs with clipped gradients, which are eager tensors."""
        with no_grad():
            return self._clipped(params_grads)

    def _static_clip(self, params_grads: Sequence[ParamGrad]) -> list[ParamGrad]:
        """The pairs with clipped gradients, by operators in the main program."""
        ops = default_main_program().current_block().ops
        begin = len(ops)
        with name_scope("gradient_clip"):
            pairs = self._clipped(params_grads)
        _name_results(ops[begin:], {param.name: grad for param, grad in pairs})
        return pairs

    def _clipped(self, params_grads: Sequence[ParamGrad]) -> list[ParamGrad]:
        given = [pair for pair in params_grads if pair[1] is not None]
        chosen = [self._wants(param) for param, _ in given]
        clipped = iter(self._clip([pair for pair, wanted in zip(given, chosen, strict=True) if wanted]))
        return [
            (param, next(clipped) if wanted else grad)
            for (param, grad), wanted in zip(given, chosen, strict=True)
        ]

    def _wants(self, param: Parameter) -> bool:
        return self._need_clip_func is None or bool(self._need_clip_func(getattr(param, "origin", param)))

    def _clip(self, params_grads: list[Any]) -> list[Variable]:
        """The clipped gradients of the pairs, in their order."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to clip gradients")


class GradientClipByValue(GradientClipBase):
    """Moves every element of a gradient into [min, max] (`fluid.clip.GradientClipByValue`).

    `min` is -max by default.
    """

    def __init__(
        self, max: float, min: float | None = None, need_clip: Callable[[Parameter], bool] | None = None
    ) -> None:
        super().__init__(need_clip)
        self.max = float(max)
        self.min = -self.max if min is None else float(min)
        if min is None and not self.max > 0:
            raise ArgumentAssertion(f"'max' of GradientClipByValue must be positive without 'min', got {max}")

    def __str__(self) -> str:
        return f"Gradient Clip By Value, min = {self.min:f}, max={self.max:f}"

    def _clip(self, params_grads: list[Any]) -> list[Variable]:
        return [
            _apply("clip", param, grad, {"X": grad}, {"min": self.min, "max": self.max})
            for param, grad in params_grads
        ]


class GradientClipByNorm(GradientClipBase):
    """Shortens each gradient alone to the norm `clip_norm` (`fluid.clip.GradientClipByNorm`)."""

    def __init__(self, clip_norm: float, need_clip: Callable[[Parameter], bool] | None = None) -> None:
        super().__init__(need_clip)
        self.clip_norm = float(clip_norm)

    def __str__(self) -> str:
        return f"Gradient Clip By Norm, clip_norm={self.clip_norm:f}"

    def _clip(self, params_grads: list[Any]) -> list[Variable]:
        attrs = {"max_norm": self.clip_norm}
        return [_apply("clip_by_norm", param, grad, {"X": grad}, attrs) for param, grad in params_grads]


class GradientClipByGlobalNorm(GradientClipBase):
    """Shortens all gradients together so that the norm of them all is at most `clip_norm`.

    With `set_gradient_clip`, the norm is that of the gradients whose clips have the same `group_name`. Follows
    `fluid.clip.GradientClipByGlobalNorm`.
    """

    def __init__(
        self,
        clip_norm: float,
        group_name: str = "default_group",
        need_clip: Callable[[Parameter], bool] | None = None,
    ) -> None:
        super().__init__(need_clip)
        self.clip_norm = float(clip_norm)
        self.group_name = group_name

    def __str__(self) -> str:
        return f"Gradient Clip By GlobalNorm, global_norm={self.clip_norm:f}"

    def _clip(self, params_grads: list[Any]) -> list[Variable]:
        if not params_grads:
            return []
        squares = [self._square(param, grad) for param, grad in params_grads]
        scale = self._scale(squares, *params_grads[-1])
        return [_scaled(param, grad, scale) for param, grad in params_grads]

    @staticmethod
    def _square(param: Parameter, grad: Variable) -> Variable:
        """The square of the norm of `grad`, [1]."""
        held = grad
        if grad.type == VarType.SELECTED_ROWS:
            for reader in ("merge_selected_rows", "get_tensor_from_selected_rows"):
                held = _apply(reader, param, grad, {"X": held})
        square = _apply("square", param, grad, {"X": held})
        all_of_it = {"dim": [0], "keep_dim": False, "reduce_all": True}
        return _apply("reduce_sum", param, grad, {"X": square}, all_of_it)

    def _limit(self, param: Parameter, grad: Variable) -> Variable:
        largest = float(np.finfo(to_numpy(grad.dtype)).max)
        value = min(self.clip_norm, largest)  # infinity divided by infinity would be NaN
        attrs = {"shape": [1], "dtype": int(grad.dtype), "value": value, "str_value": str(value)}
        limit = _apply("fill_constant", param, grad, {}, attrs)
        limit.stop_gradient = True
        return limit

    def _scale(
        self, squares: list[Variable], param: Parameter, grad: Variable, limit: Variable | None = None
    ) -> Variable:
        """The scale of gradients with these squared norms, [1]."""
        total = _apply("sqrt", param, grad, {"X": _apply("sum", param, grad, {"X": squares})})
        limit = limit or self._limit(param, grad)
        size = _apply("elementwise_max", param, grad, {"X": limit, "Y": total}, {"axis": -1})
        return _apply("elementwise_div", param, grad, {"X": limit, "Y": size}, {"axis": -1})


def _scaled(param: Parameter, grad: Variable, scale: Variable) -> Variable:
    return _apply("elementwise_mul", param, grad, {"X": grad, "Y": scale}, {"axis": -1})


def _name_results(ops: Sequence[Operator], made: dict[str, Variable]) -> None:
    """Have operators name the clipped gradient of their parameter in place of the one that they clip, as in Fluid."""
    for op in ops:
        roles = op.attrs.get("op_role_var")
        if roles:
            op.attrs["op_role_var"] = [roles[0], made[roles[0]].name]


def _apply(
    op_type: str,
    param: Parameter,
    grad: Variable,
    inputs: dict[str, Any],
    attrs: dict[str, Any] | None = None,
) -> Variable:
    """Append an operator to the clipping of `grad`, or run it; returns its output."""
    if isinstance(grad, Tensor):
        return run_op(op_type, inputs, attrs=attrs)
    with param.block.program._optimized_guard([param, grad]):
        out: Variable = run_op(op_type, inputs, attrs=attrs)
    return out


def set_gradient_clip(
    clip: GradientClipBase,
    param_list: Sequence[Parameter | str] | None = None,
    program: Program | None = None,
) -> None:
    """Have optimizers clip the gradients of `param_list` (all parameters by default) with `clip`.

    An optimizer's own `grad_clip` comes first. As in Fluid 1.8, nothing is clipped unless every parameter
    that is trained has a clip, and that of the last one is taken for all, with a warning if they differ. Raises
    TypeError if `clip` is no gradient clip. Follows `fluid.clip.set_gradient_clip`.
    """
    if not isinstance(clip, GradientClipBase):
        raise ArgumentTypeError(
            f"'clip' should be an instance of GradientClipBase's derived class, got {clip!r}"
        )
    if mode.in_dygraph_mode():
        raise AssertionError(
            "We don't support set_gradient_clip in imperative mode: give the optimizer grad_clip"
        )
    program = default_main_program() if program is None else program
    block = program.global_block()
    params = program.all_parameters() if param_list is None else param_list
    for item in params:
        param = block.var(item) if isinstance(item, str) else item
        if not isinstance(param, Parameter):
            raise ArgumentTypeError(f"param_list holds Parameters or their names, got {item!r}")
        param.gradient_clip_attr = copy.deepcopy(clip)


def append_gradient_clip_ops(params_grads: Sequence[ParamGrad]) -> list[ParamGrad]:
    """Clip gradients as `set_gradient_clip` asked; returns the pairs with the gradients to use.

    Warns and clips nothing if only some of the parameters have a clip. Raises ValueError if parameters of
    one group have different norms.
    """
    trained = [(param, grad) for param, grad in params_grads if grad is not None]
    clips = [param.gradient_clip_attr for param, _ in trained]
    if not any(clips):
        return list(params_grads)
    if not all(clips):
        bare = next(param.name for param, _ in trained if param.gradient_clip_attr is None)
        callsite.warn(
            f"set_gradient_clip has no effect, as in Fluid 1.8: parameter {bare!r} has no clip, and "
            "all parameters or none must have one; give the optimizer grad_clip with need_clip instead"
        )
        return list(params_grads)
    last: Any = clips[-1]
    ops = default_main_program().current_block().ops
    begin = len(ops)
    with name_scope("gradient_clip"):
        groups = _groups(trained)
        squares_end = len(ops)
        if isinstance(last, GradientClipByGlobalNorm):
            limit, squares = groups[last.group_name]
            scale = last._scale(squares, *trained[0], limit)
            clipped = [_scaled(param, grad, scale) for param, grad in trained]
        else:
            clipped = last._clip(trained)
    if any(vars(clip) != vars(last) or type(clip) is not type(last) for clip in clips):
        callsite.warn(
            f"every gradient is clipped by the clip of {trained[-1][0].name!r}, the last one, as in Fluid 1.8, "
            "although other parameters have different clips; give the optimizer one grad_clip"
        )
    made = {param.name: grad for (param, _), grad in zip(trained, clipped, strict=True)}
    _name_results(ops[begin:squares_end], made)
    return [(param, made.get(param.name, grad)) for param, grad in params_grads]


def _groups(trained: list[Any]) -> dict[str, tuple[Variable, list[Variable]]]:
    """Append limits and squares of all gradients that are clipped in groups; returns them by the groups' names."""
    groups: dict[str, tuple[Variable, list[Variable]]] = {}
    norms: dict[str, float] = {}
    for param, grad in trained:
        clip = param.gradient_clip_attr
        if not isinstance(clip, GradientClipByGlobalNorm):
            continue
        name = clip.group_name
        if name not in groups:
            groups[name], norms[name] = (clip._limit(param, grad), []), clip.clip_norm
        if clip.clip_norm != norms[name]:
            raise ArgumentError(
                f"All parameters of the group {name!r} must have the same clip_norm, "
                f"got {norms[name]} and {clip.clip_norm} for {param.name!r}"
            )
        groups[name][1].append(clip._square(param, grad))
    return groups


ClipByGlobalNorm = GradientClipByGlobalNorm
ClipByNorm = GradientClipByNorm
ClipByValue = GradientClipByValue
