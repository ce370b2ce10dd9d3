"""`ParamAttr`: the user's settings for a parameter of a layer."""

from __future__ import annotations

from typing import Any

from ..base.reports.texts import ShowsArguments
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
