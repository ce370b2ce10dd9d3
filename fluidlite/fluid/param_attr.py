"""`ParamAttr`: the settings for a parameter of a layer; parameters as a direction and a length
(`WeightNormParamAttr`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base import unique_name
from ..base.reports.texts import ShowsArguments
from ..framework import Block, Parameter, Variable
from .initializer import ConstantInitializer, Initializer, XavierInitializer

__all__ = ["ParamAttr", "WeightNormParamAttr"]


class ParamAttr(ShowsArguments):
    """Name, initial value and training of a parameter (`fluid.ParamAttr`).

    Args:
        name: the parameter's name; by default one is made from the layer's.
        initializer: an `Initializer`; by default the layer's own (Xavier for weights, zero for biases).
        learning_rate: multiplies the optimizer's rate for this parameter.
        regularizer: used instead of the optimizer's `regularization`.
        trainable: whether optimizers change the parameter.
        do_model_average: whether `ModelAverage` keeps an average of it.

    Raises:
        TypeError: an argument is of another type; names it.

    Example:
        >>> import paddle.fluid as fluid
        >>> x = fluid.data("x", [None, 3], "float32")
        >>> start = fluid.initializer.Constant(0.5)
        >>> y = fluid.layers.fc(x, 2, param_attr=fluid.ParamAttr(name="w", initializer=start))
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> exe.run(fluid.default_startup_program(), fetch_list=["w"])[0].shape
        (3, 2)
    """

    def __init__(
        self,
        name: str | None = None,
        initializer: Any = None,
        learning_rate: float = 1.0,
        regularizer: Any = None,
        trainable: bool = True,
        do_model_average: bool = True,
    ) -> None:
        _check("name", name, (str, type(None)), "a string or None")
        _check("learning_rate", learning_rate, (float, int), "a number")
        _check("trainable", trainable, (bool,), "True or False")
        _check("do_model_average", do_model_average, (bool,), "True or False")
        for what, value in (("initializer", initializer), ("regularizer", regularizer)):
            if value is not None and not callable(value):
                raise TypeError(
                    f"The type of '{what}' in ParamAttr must be a fluid {what}, but received {value!r}"
                )
        self.name = name if name != "" else None
        self.initializer = initializer
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.trainable = trainable
        self.do_model_average = do_model_average

    def _set_default_initializer(self, initializer: Any) -> None:
        """Use `initializer` unless the user chose one."""
        if self.initializer is None:
            self.initializer = initializer

    def _set_default_param_initializer(self) -> None:
        """Draw weights by Xavier unless the user chose otherwise."""
        self._set_default_initializer(XavierInitializer())

    def _set_default_bias_initializer(self) -> None:
        """Begin biases at zero unless the user chose otherwise."""
        self._set_default_initializer(ConstantInitializer(0.0))

    @staticmethod
    def _to_attr(arg: Any) -> Any:
        """The value of `param_attr=` or `bias_attr=` as a ParamAttr, a list of them, or False (none).

        Takes None or True (all defaults), a name, an initializer, a regularizer, a ParamAttr, a list of
        these, or False. Raises TypeError for anything else.
        """
        if arg is None or arg is True:
            return ParamAttr()
        if arg is False or isinstance(arg, ParamAttr):
            return arg
        if isinstance(arg, (list, tuple)):
            return [ParamAttr._to_attr(item) for item in arg]
        if isinstance(arg, str):
            return ParamAttr(name=arg)
        if isinstance(arg, Initializer):
            return ParamAttr(initializer=arg)
        if callable(arg):
            return ParamAttr(regularizer=arg)
        raise TypeError(
            "a parameter's attribute must be a ParamAttr, a name, an initializer, a regularizer, None or "
            f"False, got {arg!r} of type {type(arg).__name__}"
        )

    def _to_kwargs(self, with_initializer: bool = False) -> dict[str, Any]:
        """The arguments for `Block.create_parameter`."""
        kwargs: dict[str, Any] = {
            "name": self.name,
            "optimize_attr": {"learning_rate": self.learning_rate},
            "regularizer": self.regularizer,
            "trainable": self.trainable,
            "do_model_average": self.do_model_average,
        }
        if with_initializer:
            kwargs["initializer"] = self.initializer
        return kwargs


class WeightNormParamAttr(ParamAttr):
    """A weight that is trained as its direction and its length (`fluid.WeightNormParamAttr`).

    `dim`: the dimension along which each slice has a length of its own; None for one length of all. The other
    arguments are those of `ParamAttr`; `initializer` is for the direction, and the length starts as its norm.
    """

    def __init__(
        self,
        dim: int | None = None,
        name: str | None = None,
        initializer: Any = None,
        learning_rate: float = 1.0,
        regularizer: Any = None,
        trainable: bool = True,
        do_model_average: bool = False,
    ) -> None:
        super().__init__(name, initializer, learning_rate, regularizer, trainable, do_model_average)
        if dim is not None and (isinstance(dim, bool) or not isinstance(dim, int)):
            raise TypeError(f"dim of WeightNormParamAttr must be an integer or None, got {dim!r}")
        self.dim = dim


def _check(what: str, value: Any, types: tuple[type, ...], expected: str) -> None:
    wrong_bool = isinstance(value, bool) and bool not in types
    if wrong_bool or not isinstance(value, types):
        raise TypeError(
            f"The type of '{what}' in ParamAttr must be {expected}, but received {value!r} "
            f"of type {type(value).__name__}"
        )


class WeightNorm:
    """The parameters and operators of one weight g * v / |v|, made for layer `name`.

    `v` has the shape of the weight, `g` its size along `dim` and 1 elsewhere; they are called `NAME_v` and `NAME_g`.
    The norms are taken over all dimensions but `dim`, or over all of them if that is None. Follows Fluid 1.8's
    operators for `fluid.WeightNormParamAttr`.
    """

    def __init__(self, name: str, main: Block, startup: Block) -> None:
        self._layer = name
        self._main, self._startup = main, startup

    def create(
        self, attr: WeightNormParamAttr, shape: Sequence[int], dtype: Any, initializer: Any
    ) -> Variable:
        """The weight, as the result of operators of the main program; startup sets g to the norms of v.

        Raises ValueError if the weight has no dimension `attr.dim`.
        """
        dim, rank = attr.dim, len(shape)
        if dim is not None and not -rank <= dim < rank:
            raise ValueError(f"dim of WeightNormParamAttr must be in [{-rank}, {rank}), got {dim}")
        dim = dim + rank if dim is not None and dim < 0 else dim
        lengths = [n if axis == dim else 1 for axis, n in enumerate(shape)]
        g = self._parameter(attr, "_g", lengths, dtype, None)
        v = self._parameter(attr, "_v", shape, dtype, initializer)
        twin = self._startup.var(g.name)
        self._norm(self._startup, self._startup.var(v.name), dim, twin)
        self._append(self._startup, "reshape", twin, {"shape": lengths}, twin)
        norm = self._norm(self._main, v, dim)
        scale = self._combine("elementwise_div", g, norm, -1)
        if dim is None:
            return self._combine("elementwise_mul", v, scale, -1)
        return self._combine("elementwise_mul", v, self._flattened(scale, shape[dim]), dim)

    def _parameter(
        self, attr: ParamAttr, suffix: str, shape: Sequence[int], dtype: Any, initializer: Any
    ) -> Parameter:
        given = attr._to_kwargs()
        given["name"] += suffix
        self._startup.create_parameter(dtype=dtype, shape=list(shape), initializer=initializer, **given)
        return self._main.create_parameter(dtype=dtype, shape=list(shape), **given)

    def _norm(self, block: Block, x: Variable, dim: int | None, out: Variable | None = None) -> Variable:
        """The norms of `x` over all dimensions but `dim`, in `out` if given."""
        rank = len(x.shape)
        if out is None:
            out = self._temporary(block, "norm", x)
        if dim is None:
            return self._root_of_squares(block, x, None, out)
        lengths = [n if axis == dim else 1 for axis, n in enumerate(x.shape)]
        if dim == rank - 1 and rank > 1:
            flat = self._append(block, "reshape", x, {"shape": [-1, x.shape[dim]]})
            norms = self._root_of_squares(block, flat, 0)
            return self._append(block, "reshape", norms, {"shape": lengths}, out)
        size = x.shape[dim]
        swap = [dim if axis == 0 else 0 if axis == dim else axis for axis in range(rank)]
        first = self._append(block, "transpose", x, {"axis": swap}) if dim else x
        flat = self._append(block, "reshape", first, {"shape": [size, -1]})
        norms = self._root_of_squares(block, flat, 1)
        tall = {"shape": [size] + [1] * (rank - 1)}
        if not dim:
            return self._append(block, "reshape", norms, tall, out)
        norms = self._append(block, "reshape", norms, tall)
        return self._append(block, "transpose", norms, {"axis": swap}, out)

    def _root_of_squares(
        self, block: Block, x: Variable, dim: int | None, out: Variable | None = None
    ) -> Variable:
        squares = self._append(block, "pow", self._append(block, "abs", x), {"factor": 2.0})
        reduction = {"dim": [dim or 0], "keep_dim": False, "reduce_all": dim is None}
        total = self._append(block, "reduce_sum", squares, reduction)
        if out is None:
            out = self._temporary(block, "norm", x)
        return self._append(block, "pow", total, {"factor": 0.5}, out)

    def _append(
        self,
        block: Block,
        op_type: str,
        x: Variable,
        attrs: dict[str, Any] | None = None,
        out: Variable | None = None,
    ) -> Variable:
        if out is None:
            out = self._temporary(block, op_type.removeprefix("reduce_"), x)
        block.append_op(type=op_type, inputs={"X": [x]}, outputs={"Out": [out]}, attrs=attrs)
        return out

    def _temporary(self, block: Block, what: str, like: Variable) -> Variable:
        name = block._new_name(f"{self._layer}.weight_norm_{what}")
        return block.create_var(name=name, dtype=like.dtype, persistable=False, stop_gradient=False)

    def _combine(self, op_type: str, x: Variable, y: Variable, axis: int) -> Variable:
        out = self._result(op_type, x)
        self._main.append_op(
            type=op_type, inputs={"X": [x], "Y": [y]}, outputs={"Out": [out]}, attrs={"axis": axis}
        )
        return out

    def _flattened(self, x: Variable, size: int) -> Variable:
        layer = unique_name.generate("reshape2")
        out, old_shape = (
            self._main.create_var(name=self._main._new_name(f"{layer}.tmp"), dtype=x.dtype) for _ in range(2)
        )
        outputs = {"Out": [out], "XShape": [old_shape]}
        self._main.append_op(type="reshape2", inputs={"X": [x]}, outputs=outputs, attrs={"shape": [size]})
        return out

    def _result(self, op_type: str, like: Variable) -> Variable:
        name = self._main._new_name(f"{unique_name.generate(op_type)}.tmp")
        return self._main.create_var(name=name, dtype=like.dtype)
