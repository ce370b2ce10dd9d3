"""`LookaheadOptimizer`: slow weights that follow the fast ones of another optimizer every few steps."""

from __future__ import annotations

from ...framework import (
    Operator,
    Program,
    Variable,
    default_startup_program,
    program_guard,
)
from ..layers.control_flow.conditional_block import Switch
from ..layers.tensor.arithmetic import elementwise_add, elementwise_mod, elementwise_mul, elementwise_sub
from ..layers.tensor.constants import fill_constant
from ..layers.tensor.variables import assign, cast
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
