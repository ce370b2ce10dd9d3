"""`fluid.backward`: the public names of `framework.backward`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..base import missing
from ..framework.gradients.backward import append_backward, gradients
from ..framework.gradients.names import _all_in_set_ as _all_in_set_
from ..framework.gradients.names import _append_grad_suffix_ as _append_grad_suffix_
from ..framework.gradients.names import _as_list as _as_list
from ..framework.gradients.names import _get_no_grad_set_name as _get_no_grad_set_name
from ..framework.gradients.names import _get_stop_gradients_ as _get_stop_gradients_
from ..framework.gradients.names import _is_grad_var_ as _is_grad_var_
from ..framework.gradients.names import _some_in_set_ as _some_in_set_
from ..framework.gradients.names import _strip_grad_suffix_ as _strip_grad_suffix_
from ..framework.gradients.names import serialize_op_decs
from ..framework.gradients.program_stats import ProgramStats
from ..framework.variable import Variable


def calc_gradient(
    targets: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    target_gradients: Variable | Sequence[Variable | None] | None = None,
    no_grad_set: Collection[Variable | str] | None = None,
) -> Variable | None | list[Variable | None]:
    """`gradients`, with the gradient itself in place of a list of one (`fluid.backward.calc_gradient`).

    Args, shapes and errors are those of `gradients`.

    Returns:
        The gradient of the only input, a list of them for several, None for none.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> x = fluid.data("x", [2], "float32")
        >>> x.stop_gradient = False
        >>> slope = fluid.backward.calc_gradient(x * x, x)
        >>> fluid.Executor(fluid.CPUPlace()).run(feed={"x": np.array([1, 2], "float32")}, fetch_list=[slope])
        [array([2., 4.], dtype=float32)]
    """
    found = gradients(targets, inputs, target_gradients, no_grad_set)
    return found if len(found) > 1 else next(iter(found), None)


__all__ = ["ProgramStats", "append_backward", "calc_gradient", "gradients", "serialize_op_decs"]

__getattr__ = missing.reporter(__name__)
