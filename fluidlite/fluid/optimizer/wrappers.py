"""Optimizers around another one: `LookaheadOptimizer`, `PipelineOptimizer`, `RecomputeOptimizer`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NoReturn

from ...base.errors import ArgumentTypeError, NotSupportedError
from ...base.place import is_compiled_with_cuda
from ...framework import (
    Operator,
    Parameter,
    Program,
    Variable,
    default_startup_program,
    program_guard,
)
from ...framework.gradients.backward import append_backward
from ..clip import error_clip_callback
from ..layers.control_flow.conditional_block import Switch
from ..layers.tensor.arithmetic import elementwise_add, elementwise_mod, elementwise_mul, elementwise_sub
from ..layers.tensor.constants import fill_constant
from ..layers.tensor.variables import assign, cast
from .adaptive import MomentumOptimizer
from .averaging import persistable_state
from .base import Optimizer, ParamGrad
from .eager import programs_only


class LookaheadOptimizer:
    """`inner_optimizer` with slow weights (Zhang et al. 2019; `fluid.optimizer.LookaheadOptimizer`).

    Every `k` steps slow = slow + `alpha` * (fast - slow), and the fast weights, which `inner_optimizer` trains, go on
    from there. The slow weights are called `NAME@SLOW` and begin as the initial weights.

    Raises AssertionError for a missing `inner_optimizer`, `alpha` outside [0, 1] or `k` that is no positive integer.
    """

    def __init__(self, inner_optimizer: Optimizer, alpha: float = 0.5, k: int = 5) -> None:
        programs_only(self)
        if inner_optimizer is None:
            raise AssertionError("inner optimizer can not be None")
        if not 0.0 <= alpha <= 1.0:
            raise AssertionError(
                f"alpha should be larger or equal to 0.0, and less or equal than 1.0, got {alpha}"
            )
        if isinstance(k, bool) or not isinstance(k, int) or k <= 0:
            raise AssertionError(f"k should be a positive integer, got {k!r}")
        self.inner_optimizer = inner_optimizer
        self.alpha = alpha
        self.k = k
        self.type = "lookahead"

    def minimize(
        self, loss: Variable, startup_program: Program | None = None
    ) -> tuple[list[Operator], list[ParamGrad]]:
        """Append a step of `inner_optimizer` for `loss` and the slow weights; returns what its `minimize` returns."""
        done = self.inner_optimizer.minimize(loss, startup_program=startup_program)
        main = loss.block.program
        startup = default_startup_program() if startup_program is None else startup_program
        with program_guard(main, startup):
            self._append_slow_weights(main, startup)
        return done

    def _append_slow_weights(self, main: Program, startup: Program) -> None:
        params = [param.name for param in main.all_parameters()]
        for name in params:
            param = main.global_block().var(name)
            for program in (main, startup):
                program.global_block().create_var(
                    name=name + "@SLOW", shape=param.shape, dtype=param.dtype, persistable=True
                )
            startup.global_block().append_op(
                type="assign", inputs={"X": [name]}, outputs={"Out": [name + "@SLOW"]}
            )
        k = persistable_state("lookahead_k", [1], "int32", self.k)
        alpha = persistable_state("lookahead_alpha", [1], "float32", self.alpha)
        step = persistable_state("lookahead_step", [1], "int32", 0)
        block = main.global_block()
        with main._optimized_guard([]):
            block.append_op(
                type="increment", inputs={"X": [step]}, outputs={"Out": [step]}, attrs={"step": 1.0}
            )
            zero = fill_constant([1], "float32", 0.0)
            one = fill_constant([1], "float32", 1.0)
            phase = elementwise_mod(step, k)
            with Switch() as switch:
                with switch.case(phase == zero):
                    for name in params:
                        _follow(block.var(name), block.var(name + "@SLOW"), alpha, one)
                with switch.default():
                    pass


def _follow(fast: Variable, slow: Variable, alpha: Variable, one: Variable) -> None:
    """Both become alpha * fast + (1 - alpha) * slow."""
    if alpha.dtype != fast.dtype:
        alpha, one = cast(alpha, fast.dtype), cast(one, fast.dtype)
    met = elementwise_add(elementwise_mul(fast, alpha), elementwise_mul(slow, elementwise_sub(one, alpha)))
    assign(met, slow)
    assign(met, fast)


class PipelineOptimizer:
    """`optimizer` for a program cut in sections (Huang et al. 2019; `fluid.optimizer.PipelineOptimizer`).

    In one process the sections run one after the other, which is what `Executor.run` and `train_from_dataset` do with
    the program: the numbers are those of `optimizer` alone.

    Args:
        cut_list: lists of Variables; the first ends the first section, and so on, the last one is [loss].
        place_list: a place for each section: those of the cuts forward, then back again.
        concurrency_list: how many threads run each section.
        queue_size, sync_steps, start_cpu_core_id: how sections hand over to each other; change nothing here.

    Raises TypeError for no `cut_list`, IndexError for too few places.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        cut_list: Sequence[Sequence[Variable]] | None = None,
        place_list: Sequence[Any] | None = None,
        concurrency_list: Sequence[int] | None = None,
        queue_size: int = 30,
        sync_steps: int = 1,
        start_cpu_core_id: int = 0,
    ) -> None:
        programs_only(self)
        self._optimizer = optimizer
        self._cut_list = cut_list
        self._place_list = place_list
        self._concurrency_list = concurrency_list
        self._queue_size = queue_size
        self._sync_steps = sync_steps
        self._start_cpu_core_id = start_cpu_core_id

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Collection[Variable | str] | None = None,
    ) -> None:
        """Append gradients and updates for `loss`."""
        if self._cut_list is None:
            raise TypeError("cut_list must be lists of Variables that end the sections, got None")
        sections = 2 * len(self._cut_list) - 1
        places = len(self._place_list or ())
        if places < sections:
            raise IndexError(
                f"{len(self._cut_list)} cuts make {sections} sections, but there are {places} places"
            )
        self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)


class DGCMomentumOptimizer(MomentumOptimizer):
    """Momentum that sends the largest gradients only (Lin et al. 2018; `fluid.optimizer.DGCMomentumOptimizer`).

    It spares networks between GPUs of several processes, and there is one process here. As in Fluid it is refused
    without a GPU, with AssertionError; with one the error is NotSupportedError.
    """

    def __init__(
        self,
        learning_rate: float | Variable,
        momentum: float,
        rampup_begin_step: int,
        rampup_step: int = 1,
        sparsity: Sequence[float] = (0.999,),
        parameter_list: Sequence[Parameter | str] | None = None,
        use_nesterov: bool = False,
        num_trainers: int | None = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        programs_only(self)
        if not is_compiled_with_cuda():
            raise AssertionError(
                "DGC is for GPUs only, and there is none here: fluid.optimizer.Momentum trains the same network"
            )
        raise NotSupportedError(
            "DGCMomentumOptimizer sends gradients between processes, and there is one here: use Momentum"
        )


class RecomputeOptimizer(Optimizer):
    """`optimizer`, whose backward pass keeps only checkpoints of the forward pass.

    Follows `fluid.optimizer.RecomputeOptimizer`. Call `_set_checkpoints([variables])` before `minimize`. Values
    between two checkpoints are recomputed for their gradients; the numbers stay the same. Moving averages of
    batch_norm between checkpoints are updated twice in a step, as in Fluid 1.8. Raises TypeError if `optimizer` is no
    optimizer.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        programs_only(self)
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(f"RecomputeOptimizer takes an optimizer, got {optimizer!r:.60}")
        super().__init__(
            optimizer._learning_rate,
            optimizer._parameter_list,
            optimizer.regularization,
            optimizer._grad_clip,
            optimizer._name,
        )
        self.type = optimizer.type
        self._optimizer = optimizer
        self._checkpoints: list[Variable | str] | None = None

    def _set_checkpoints(self, checkpoints: Sequence[Variable | str]) -> None:
        """Set the variables (or names) that are kept; TypeError for anything but a list of these."""
        if isinstance(checkpoints, (str, Variable)) or not all(
            isinstance(item, (Variable, str)) for item in checkpoints
        ):
            raise ArgumentTypeError(
                f"checkpoints must be a list of Variables or names, got {checkpoints!r:.80}"
            )
        self._checkpoints = list(checkpoints)

    def load(self, stat_dict: dict[str, Any]) -> NoReturn:
        """Not supported, as in Fluid 1.8: load with fluid.load or fluid.io."""
        raise NotImplementedError("load function is not supported by Recompute Optimizer for now")

    def backward(
        self,
        loss: Variable,
        startup_program: Any = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Collection[Variable | str] | None = None,
        callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> list[ParamGrad]:
        """Append the gradients of `loss` with recomputation; raises AssertionError before `_set_checkpoints`."""
        if self._checkpoints is None:
            raise AssertionError("You should call _set_checkpoints first")
        if not isinstance(loss, Variable):
            raise ArgumentTypeError(
                f"The loss should be a Variable, got {type(loss).__name__} ({loss!r:.60})"
            )
        self._optimizer._dtype = self._dtype = loss.dtype
        chosen = parameter_list if parameter_list else self._parameter_list
        with program_guard(loss.block.program, startup_program):
            return list(
                append_backward(
                    loss, chosen, no_grad_set, [error_clip_callback, *(callbacks or ())], self._checkpoints
                )
            )

    def apply_gradients(self, params_grads: Sequence[ParamGrad]) -> list[Operator]:
        """Apply the pairs of `backward` with the wrapped optimizer."""
        return self._optimizer.apply_gradients(params_grads)

    def apply_optimize(
        self, loss: Variable, startup_program: Any, params_grads: Sequence[ParamGrad]
    ) -> list[Operator]:
        """`apply_gradients` in the program of `loss`."""
        return self._optimizer.apply_optimize(loss, startup_program, params_grads)
