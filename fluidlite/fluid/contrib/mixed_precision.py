"""`fluid.contrib.mixed_precision`: training in float16 where it is safe, with a scaled loss."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from ...base.dtypes import VarType
from ...framework import (
    Block,
    Operator,
    OpRole,
    Parameter,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
)
from .. import layers
from ..optimizer import Optimizer

__path__: list[str] = []  # the modules below are views: base/names/views.py

__all__ = ["AutoMixedPrecisionLists", "decorate"]


class OptimizerWithMixedPrecision:
    """An optimizer for mixed precision, made by `decorate`; the arguments are the same."""

    def __init__(
        self,
        optimizer: Optimizer,
        amp_lists: AutoMixedPrecisionLists,
        init_loss_scaling: float,
        use_dynamic_loss_scaling: bool,
        incr_every_n_steps: int,
        decr_every_n_nan_or_inf: int,
        incr_ratio: float,
        decr_ratio: float,
    ) -> None:
        self._optimizer = optimizer
        self._amp_lists = amp_lists
        self._param_grads: Any = None
        self._train_program = default_main_program()
        self._startup_prog = default_startup_program()
        self._scaled_loss: Variable | None = None
        self._loss_scaling = _state("loss_scaling", init_loss_scaling, "float32")
        self._use_dynamic_loss_scaling = use_dynamic_loss_scaling
        if use_dynamic_loss_scaling:
            self._incr_every_n_steps = layers.fill_constant([1], "int32", incr_every_n_steps)
            self._decr_every_n_nan_or_inf = layers.fill_constant([1], "int32", decr_every_n_nan_or_inf)
            self._incr_ratio, self._decr_ratio = incr_ratio, decr_ratio
            self._num_good_steps = _state("num_good_steps", 0, "int32")
            self._num_bad_steps = _state("num_bad_steps", 0, "int32")
        if isinstance(optimizer._learning_rate, float):
            optimizer._create_global_learning_rate()

    def get_loss_scaling(self) -> Variable:
        """The scale of the loss in the current step, float32 [1]."""
        return self._loss_scaling

    def get_scaled_loss(self) -> Variable | None:
        """The loss times its scale; None before `backward`."""
        return self._scaled_loss

    def backward(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Collection[Variable | str] | None = None,
        callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> list[tuple[Parameter, Variable]]:
        """Rewrite the program to float16 and append the gradients of the scaled `loss`.

        Returns pairs of parameter and gradient; the gradients are unscaled, float32.
        """
        rewrite_program(self._train_program, self._amp_lists)
        self._scaled_loss = loss * self._loss_scaling
        self._params_grads: Any = self._optimizer.backward(
            self._scaled_loss, startup_program, parameter_list, no_grad_set, callbacks
        )
        update_role_var_grad(self._train_program, self._params_grads)
        scaled = []
        for param, grad in self._params_grads:
            with self._train_program._optimized_guard([param, grad]):
                scaled.append((param, grad / self._loss_scaling))
        return scaled

    def apply_gradients(self, scaled_params_grads: Sequence[tuple[Parameter, Variable]]) -> list[Operator]:
        """Append the updates for the pairs of `backward` and that of the scale; returns the update operators.

        With dynamic scaling, a step whose gradients are not all finite updates with gradients of zero.
        """
        if self._use_dynamic_loss_scaling:
            sums = [layers.reduce_sum(grad) for _, grad in scaled_params_grads]
            finite = layers.isfinite(layers.reduce_sum(layers.concat(sums)))
            update_loss_scaling(
                finite,
                self._loss_scaling,
                self._num_good_steps,
                self._num_bad_steps,
                self._incr_every_n_steps,
                self._decr_every_n_nan_or_inf,
                self._incr_ratio,
                self._decr_ratio,
            )
            with layers.Switch() as step:
                with step.case(finite):
                    pass
                with step.default():
                    for _, grad in scaled_params_grads:
                        layers.assign(layers.zeros_like(grad), grad)
        return self._optimizer.apply_gradients(scaled_params_grads)

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Collection[Variable | str] | None = None,
    ) -> tuple[list[Operator], list[tuple[Parameter, Variable]]]:
        """`backward` and `apply_gradients`; returns the update operators and the pairs of parameter and gradient."""
        scaled = self.backward(loss, startup_program, parameter_list, no_grad_set)
        return self.apply_gradients(scaled), scaled


def _state(name: str, value: float, dtype: str) -> Variable:
    unused = default_main_program().global_block()._new_name(name)
    return layers.create_global_var([1], value=value, dtype=dtype, persistable=True, name=unused)


def decorate(
    optimizer: Optimizer,
    amp_lists: AutoMixedPrecisionLists | None = None,
    init_loss_scaling: float = 2**15,
    incr_every_n_steps: int = 1000,
    decr_every_n_nan_or_inf: int = 2,
    incr_ratio: float = 2.0,
    decr_ratio: float = 0.8,
    use_dynamic_loss_scaling: bool = True,
) -> OptimizerWithMixedPrecision:
    """`optimizer` for training in mixed precision (`fluid.contrib.mixed_precision.decorate`; programs only).

    Parameters and updates are float32; products and convolutions compute in float16 (a CPU stores float16 and computes
    in float32). The loss is multiplied by a scale, so that small gradients do not become 0.

    Args:
        amp_lists: the operators that compute in float16; the default lists if None.
        init_loss_scaling: the initial scale.
        incr_every_n_steps: after more consecutive finite steps than this, the scale is multiplied by `incr_ratio`.
        decr_every_n_nan_or_inf: after more consecutive other steps than this, it is multiplied by `decr_ratio`, but
            kept at 1 or more.
        use_dynamic_loss_scaling: False for a constant scale.
    """
    return OptimizerWithMixedPrecision(
        optimizer,
        AutoMixedPrecisionLists() if amp_lists is None else amp_lists,
        init_loss_scaling,
        use_dynamic_loss_scaling,
        incr_every_n_steps,
        decr_every_n_nan_or_inf,
        incr_ratio,
        decr_ratio,
    )


white_list = set("conv2d matmul mul".split())
"""Types that are faster in float16, with little loss of precision."""

black_list = set(
    """
    cos_sim cross_entropy cross_entropy2 exp log mean sigmoid_cross_entropy_with_logits softmax
    softmax_with_cross_entropy square sum
    """.split()
)
"""Types that need the precision or range of float32."""

gray_list = set(
    """
    batch_norm cast dropout elementwise_add elementwise_div elementwise_floordiv elementwise_max elementwise_min
    elementwise_mod elementwise_mul elementwise_pow elementwise_sub fill_constant flatten2 gather gaussian_random
    gaussian_random_batch_size_like get_tensor_from_selected_rows leaky_relu lookup_table pool2d pool3d rank relu
    relu6 reshape2 scale sigmoid sign slice soft_relu stack tanh top_k transpose2 uniform_random_batch_size_like unstack
    """.split()
)
"""Types that compute in the precision of their inputs."""


class AutoMixedPrecisionLists:
    """The three lists for one network (`fluid.contrib.mixed_precision.AutoMixedPrecisionLists`).

    Operators of `white_list` compute in float16, those of `black_list` in float32, those of `gray_list` in the
    precision of their producers; all others in float32.

    Args:
        custom_white_list: types to move to the white list.
        custom_black_list: types to move to the black list.
        custom_black_varnames: names of variables; operators that read or write one compute in float32.

    Raises ValueError if both custom lists have a type.
    """

    def __init__(
        self,
        custom_white_list: Iterable[str] | None = None,
        custom_black_list: Iterable[str] | None = None,
        custom_black_varnames: Iterable[str] | None = None,
    ) -> None:
        self._custom_white_list = custom_white_list
        self._custom_black_list = custom_black_list
        white, black = set(custom_white_list or ()), set(custom_black_list or ())
        if white & black:
            raise ValueError(
                f"Custom white list overlap custom black list: {', '.join(sorted(white & black))} can be in one only"
            )
        self.white_list = (white_list - black) | white
        self.black_list = (black_list - white) | black
        self.gray_list = gray_list - white - black
        self.black_varnames = custom_black_varnames


_HOLDERS = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS, VarType.LOD_TENSOR_ARRAY)
_SUFFIX = {VarType.FP16: ".cast_fp16", VarType.FP32: ".cast_fp32"}
_READERS = ("create_py_reader", "read")


def find_true_prev_op(ops: Sequence[Operator], cur_op: Operator, var_name: str) -> Operator | None:
    """The operator before `cur_op` that writes `var_name`; None if there is none, ValueError if there are several."""
    writers = [op for op in _before(ops, cur_op) if var_name in op.output_arg_names]
    if len(writers) > 1:
        raise ValueError(
            f"There must be only one previous op that outputs {var_name} variable, "
            f"got {', '.join(op.type for op in writers)}"
        )
    return writers[0] if writers else None


def find_true_post_op(ops: Sequence[Operator], cur_op: Operator, var_name: str) -> list[Operator]:
    """The operators after `cur_op` that read `var_name`."""
    later = list(ops)[len(_before(ops, cur_op)) + 1 :]
    return [op for op in later if var_name in op.input_arg_names]


def _before(ops: Sequence[Operator], cur_op: Operator) -> list[Operator]:
    ops = list(ops)
    return ops[: next((place for place, op in enumerate(ops) if op is cur_op), len(ops))]


def find_op_index(block_desc: Any, cur_op_desc: Any) -> int:
    """The index of the operator `cur_op_desc` in the block `block_desc` (both `desc`); -1 if it is not there."""
    places = (place for place in range(block_desc.op_size()) if block_desc.op(place) == cur_op_desc)
    return next(places, -1)


def rewrite_program(main_prog: Program, amp_lists: AutoMixedPrecisionLists) -> None:
    """Make the operators of the first block compute in float16 or float32, as the lists say, with casts between.

    Parameters stay float32 and are cast where float16 needs them. Call it before gradients are appended.
    """
    block = main_prog.global_block()
    half, single = _sorted_out(block.ops, block, amp_lists)
    place = 0
    while place < len(block.ops):
        op = block.ops[place]
        if op in half:
            place += _cast_inputs(block, op, place, VarType.FP32, VarType.FP16)
            _halve_outputs(block, op)
        elif op in single:
            place += _cast_inputs(block, op, place, VarType.FP16, VarType.FP32)
        place += 1


def _sorted_out(
    ops: Sequence[Operator], block: Block, lists: AutoMixedPrecisionLists
) -> tuple[set[Operator], set[Operator]]:
    """The operators that compute in float16, and those that compute in float32."""
    half: set[Operator] = set()
    single: set[Operator] = set()
    for op in ops:
        if op.type in _READERS:
            continue
        if _is_in_black_varnames(op, lists) or op.type in lists.black_list:
            single.add(op)
        elif op.type in lists.white_list:
            half.add(op)
        elif op.type in lists.gray_list:
            makers = [_maker(block, ops, op, name) for name in op.input_arg_names]
            if any(maker in single or maker.type in lists.black_list for maker in makers if maker):
                single.add(op)
            elif any(maker in half or maker.type in lists.white_list for maker in makers if maker):
                half.add(op)
        else:
            single.add(op)
    return half, single


def _is_in_black_varnames(op: Operator, amp_lists: AutoMixedPrecisionLists) -> bool:
    """True if an operator reads or writes a variable that has to stay float32."""
    if not amp_lists.black_varnames:
        return False
    return not set(amp_lists.black_varnames).isdisjoint([*op.input_arg_names, *op.output_arg_names])


def _maker(block: Block, ops: Sequence[Operator], op: Operator, name: str) -> Operator | None:
    """The operator that computes the input `name` of `op`."""
    maker = block.var(name).op
    return find_true_prev_op(ops, op, name) if maker is op else maker


def _cast_inputs(block: Block, op: Operator, place: int, source: VarType, target: VarType) -> int:
    """Cast the inputs of `op`, at index `place`, from type `source` to `target`; returns the number of new casts."""
    inserted = 0
    for slot in sorted(op.inputs):
        if target == VarType.FP16 and op.type == "batch_norm" and slot != "X":  # its statistics stay float32
            continue
        for name in op.input(slot):
            var = block.var(name)
            if var.type not in _HOLDERS:
                continue
            if var.dtype == source:
                inserted += _cast_input(block, op, place, var, target)
            elif op.has_attr("in_dtype"):
                op._set_attr("in_dtype", int(target))
    return inserted


def _cast_input(block: Block, op: Operator, place: int, var: Variable, target: VarType) -> int:
    """Make `op` read `var` cast to `target`; returns 1 for a new cast, 0 if there was one."""
    name = var.name + _SUFFIX[target]
    known = block.vars.get(name)
    missing = known is None or known.dtype != target
    if missing:
        cast = block.create_var(name=name, dtype=target, persistable=False, stop_gradient=False)
        block._insert_op(
            place,
            type="cast",
            inputs={"X": var},
            outputs={"Out": cast},
            attrs={"in_dtype": int(var.dtype), "out_dtype": int(target)},
        )
    op._rename_input(var.name, name)
    op._rename_output(var.name, name)
    return int(missing)


def _halve_outputs(block: Block, op: Operator) -> None:
    """Declare the float32 results of `op` as float16."""
    for slot, names in op.outputs.items():
        if op.type == "batch_norm" and slot != "Y":
            continue
        for name in names:
            var = block.var(name)
            if var.type in _HOLDERS and var.dtype == VarType.FP32:
                var._dtype = VarType.FP16
                if op.has_attr("out_dtype"):
                    op._set_attr("out_dtype", int(VarType.FP16))
    block.program._changed()


def update_role_var_grad(
    main_prog: Program, params_grads: Sequence[tuple[Parameter, Variable | None]]
) -> None:
    """Move the casts of float16 gradients to float32 after the backward pass, where they belong to the update.

    The attribute `op_role_var` moves to the operator that computes the float16 gradient. Raises ValueError if another
    operator reads the result of such a cast.
    """
    block = main_prog.global_block()
    for param, grad in params_grads:
        cast = None if grad is None else grad.op
        if grad is None or grad.dtype != VarType.FP32 or cast is None or cast.type != "cast":
            continue
        if not cast.attr("op_role") & OpRole.Backward:
            raise ValueError(
                f"the cast that makes the gradient {grad.name} does not belong to the backward pass"
            )
        cast._remove_attr("op_role_var")
        half = block.var(cast.input("X")[0])
        assert half.op is not None
        half.op._set_attr("op_role_var", [param.name, half.name])
        readers = find_true_post_op(block.ops, cast, grad.name)
        if readers:
            raise ValueError(
                f"The cast op's output {grad.name} should not be used by a non-optimize op, "
                f"however, it is used by {', '.join(op.type for op in readers)}"
            )
        block._remove_op(cast.idx)
        cast._set_attr("op_role", OpRole.Optimize)
        block.ops.append(cast)
        grad.op = cast


def update_loss_scaling(
    is_overall_finite: Variable,
    prev_loss_scaling: Variable,
    num_good_steps: Variable,
    num_bad_steps: Variable,
    incr_every_n_steps: Variable,
    decr_every_n_nan_or_inf: Variable,
    incr_ratio: float,
    decr_ratio: float,
) -> None:
    """Append the update of the loss scale after a step (Micikevicius et al. 2018).

    Args:
        is_overall_finite: bool [1], True if all gradients of the step are finite.
        prev_loss_scaling: the scale, float32 [1].
        num_good_steps: the number of consecutive finite steps, int32 [1].
        num_bad_steps: the number of consecutive other steps, int32 [1].
        incr_every_n_steps: the number of finite steps that the scale grows after, by `incr_ratio`, int32 [1].
        decr_every_n_nan_or_inf: the number of others that it shrinks after, by `decr_ratio`, to 1 at least, int32 [1].
    """
    zero = layers.fill_constant([1], "int32", 0)

    def reset_counters() -> None:
        layers.assign(zero, num_good_steps)
        layers.assign(zero, num_bad_steps)

    with layers.Switch() as step:
        with step.case(is_overall_finite):
            due = layers.less_than(incr_every_n_steps, num_good_steps + 1)
            with layers.Switch() as growth:
                with growth.case(due):
                    grown = prev_loss_scaling * incr_ratio
                    with layers.Switch() as end:
                        with end.case(layers.isfinite(grown)):
                            layers.assign(grown, prev_loss_scaling)
                        with end.default():
                            pass
                    reset_counters()
                with growth.default():
                    layers.increment(num_good_steps)
                    layers.assign(zero, num_bad_steps)
        with step.default():
            due = layers.less_than(decr_every_n_nan_or_inf, num_bad_steps + 1)
            with layers.Switch() as shrinking:
                with shrinking.case(due):
                    shrunk = prev_loss_scaling * decr_ratio
                    one = layers.fill_constant([1], prev_loss_scaling.dtype, 1.0)
                    with layers.Switch() as end:
                        with end.case(layers.less_than(shrunk, one)):
                            layers.assign(one, prev_loss_scaling)
                        with end.default():
                            layers.assign(shrunk, prev_loss_scaling)
                    reset_counters()
                with shrinking.default():
                    layers.assign(zero, num_good_steps)
                    layers.increment(num_bad_steps)
