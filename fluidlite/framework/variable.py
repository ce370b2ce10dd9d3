"""`Variable` and `Parameter`: the nodes of a Program that hold values; `ComplexVariable`, a pair of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import unique_name
from ..base.dtypes import VarType, to_numpy, to_vartype
from ..base.errors import StaticModeError
from ..base.sizes import SymInt
from ..ops.registry import grad_name
from .math_ops import VariableMath

if TYPE_CHECKING:
    from typing_extensions import Self

    from .operator import Operator
    from .program import Block
    from .serialization.descs import VarDesc


def as_shape(shape: Sequence[Any] | int | None, what: str) -> tuple[int, ...]:
    """A tuple of ints, with -1 for None; raises a TypeError naming `what` otherwise."""
    if shape is None:
        return ()
    if isinstance(shape, int):
        shape = [shape]
    dims: list[Any] = []
    for n in shape:
        if n is None:
            n = -1
        try:
            dims.append(n if isinstance(n, SymInt) else int(n))
        except (TypeError, ValueError):
            raise TypeError(f"the shape of {what} must hold integers or None, got {list(shape)}") from None
    return tuple(dims)


class _VariableKind(type):
    """Makes `isinstance(x, Variable)` true for eager tensors too, as scripts for Fluid's dygraph mode expect."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        twin = getattr(type(instance), "stands_for", None)
        return twin is not None and issubclass(_NAMED[twin], cls)


class Variable(VariableMath, metaclass=_VariableKind):
    """A value of a program: made by `Block.create_var`, the layers and the operators of Python.

    `shape` has -1 where a size is known only when the program runs; `dtype` is a `VarType`.
    Follows `fluid.framework.Variable`.
    """

    line: tuple[str, int] | None = None
    """The user's line that declared a data variable."""

    def __init__(
        self,
        block: Block,
        type: VarType = VarType.LOD_TENSOR,
        name: str | None = None,
        shape: Sequence[int | None] | None = None,
        dtype: Any = None,
        lod_level: int | None = None,
        capacity: int | None = None,
        persistable: bool | None = None,
        error_clip: Any = None,
        stop_gradient: bool = False,
        is_data: bool = False,
        need_check_feed: bool = False,
        belong_to_optimizer: bool = False,
        **kwargs: Any,
    ) -> None:
        self.block = block
        self.name = name if name is not None else block._new_name("_generated_var")
        self.type = type
        self._shape = as_shape(shape, f"variable {self.name!r}")
        self._shaped = shape is not None
        self._dtype = to_vartype(dtype) if dtype is not None else None
        self.lod_level = lod_level or 0
        self.persistable = bool(persistable)
        self.error_clip = error_clip
        self.stop_gradient = stop_gradient
        self.is_data = is_data
        self.need_check_feed = need_check_feed
        self.belong_to_optimizer = belong_to_optimizer
        self.op: Operator | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> VarType:
        return VarType.FP32 if self._dtype is None else self._dtype

    @property
    def grad_name(self) -> str:
        """The name of this variable's gradient."""
        return grad_name(self.name)

    def astype(self, dtype: Any) -> Variable:
        """This variable converted to `dtype` by a `cast` operator."""
        out = self._temporary(to_vartype(dtype))
        self._append("cast", {"X": [self]}, out, {"in_dtype": int(self.dtype), "out_dtype": int(out.dtype)})
        return out

    @property
    def desc(self) -> VarDesc:
        """This variable in the form of Fluid's native module."""
        from .serialization.descs import VarDesc

        return VarDesc(self)

    def _copied_to(self, block: Block) -> Self:
        """The same variable in `block`, with no operator that computes it yet."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.block = block
        copy.op = None
        return copy

    def _take_over(self, known: Variable, given: dict[str, Any]) -> None:
        """Take attributes that are not in `given` from `known`, the variable that this one replaces."""
        for name in ("shape", "type", "dtype", "lod_level", "persistable"):
            mine, theirs = getattr(self, name), getattr(known, name)
            if (
                mine != theirs
                and given.get(name) is not None
                and (name != "dtype" or known._dtype is not None)
            ):
                raise ValueError(
                    f"variable {self.name!r} exists with {name} {theirs}, and cannot have {mine}"
                )
        self._shape, self._shaped = known._shape, known._shaped or self._shaped
        self._dtype = known._dtype if self._dtype is None else self._dtype
        self.type, self.lod_level, self.persistable = known.type, known.lod_level, known.persistable

    def _set_error_clip(self, error_clip: Any) -> None:
        self.error_clip = error_clip

    def _set_info(self, key: str, value: Any) -> None:
        """Attach a value to this variable, for `_get_info`."""
        self.__dict__.setdefault("_info", {})[key] = value

    def _get_info(self, key: str) -> Any:
        return self.__dict__.get("_info", {}).get(key)

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """The variable as text, in the form of a saved program."""
        from .serialization import proto

        return proto.variable_text(self, with_details)

    def __repr__(self) -> str:
        return self.to_string()

    __str__ = __repr__

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """A line for IPython and notebooks; `print` shows Fluid's text."""
        sizes = ", ".join("None" if n < 0 else str(n) for n in self.shape)
        traits = {"fed": self.is_data, "persistable": self.persistable, "sequences": self.lod_level > 0}
        found = "".join(f", {trait}" for trait, holds in traits.items() if holds)
        printer.text(f"{type(self).__name__} {self.name!r}: {to_numpy(self.dtype).name} [{sizes}]{found}")

    def detach(self) -> Any:
        if self.block.program._tracer is None:
            raise self._only_eager("detach")
        out = self._temporary(self.dtype)
        self._append("assign", {"X": [self]}, out, {})
        out.stop_gradient = True
        return out

    def numpy(self) -> Any:
        raise self._only_eager("numpy")

    def backward(self, *args: Any, **kwargs: Any) -> Any:
        raise self._only_eager("backward")

    def gradient(self) -> Any:
        raise self._only_eager("gradient")

    def clear_gradient(self) -> Any:
        raise self._only_eager("clear_gradient")

    def set_value(self, value: Any) -> Any:
        raise self._only_eager("set_value")

    def _only_eager(self, what: str) -> StaticModeError:
        self._without_value(f"{what}()")
        return StaticModeError(
            f"{what}() needs a value, but variable {self.name!r} belongs to a static program and has none while it "
            "is built; fetch it with Executor.run(fetch_list=[...]); Layers whose parameters are eager are made "
            "inside fluid.dygraph.guard()"
        )


class Parameter(Variable):
    """A persistable variable that training changes (`fluid.framework.Parameter`).

    `optimize_attr['learning_rate']` multiplies the optimizer's rate. `origin` is the parameter that users see: this
    one, or the eager parameter that it represents in a private program.
    """

    def __init__(
        self,
        block: Block,
        shape: Sequence[int],
        dtype: Any,
        type: VarType = VarType.LOD_TENSOR,
        **kwargs: Any,
    ) -> None:
        shape = as_shape(shape, "a parameter")
        if not shape:
            raise ValueError("the shape of a parameter must not be empty")
        if any(n < 0 for n in shape):
            raise ValueError(f"a parameter needs a known shape, got {list(shape)} for {kwargs.get('name')!r}")
        kwargs["persistable"] = True
        super().__init__(block, type=type, shape=shape, dtype=dtype, **kwargs)
        self.trainable = kwargs.get("trainable", True)
        self.optimize_attr = kwargs.get("optimize_attr") or {"learning_rate": 1.0}
        self.regularizer = kwargs.get("regularizer")
        self.gradient_clip_attr = kwargs.get("gradient_clip_attr")
        self.do_model_average = kwargs.get("do_model_average")
        self.is_distributed = False
        self.need_clip = kwargs.get("need_clip", True)
        self._origin = kwargs.get("origin")

    @property
    def origin(self) -> Any:
        return self if self._origin is None else self._origin


_NAMED: dict[str, type] = {"variable": Variable, "parameter": Parameter}
"""The values of `stands_for` in classes of eager tensors."""


class ComplexVariable:
    """Complex numbers whose real and imaginary parts are two variables or eager tensors (`fluid.ComplexVariable`).

    The functions of `paddle.complex` compute with it; the operators of Python do not, as in Fluid.

    Args:
        real, imag: of one shape and type, float32 or float64.

    Raises:
        AssertionError, as in Fluid: the parts differ in shape.
    """

    def __init__(self, real: Any, imag: Any) -> None:
        for part in (real, imag):
            if not isinstance(part, Variable):
                raise AttributeError(
                    f"the parts of a ComplexVariable are variables or tensors, got {type(part).__name__}"
                )
        if tuple(real.shape) != tuple(imag.shape):
            raise AssertionError(
                "the real and the imaginary part of a ComplexVariable must have the same shape, got "
                f"{list(real.shape)} and {list(imag.shape)}"
            )
        self.real, self.imag = real, imag

    @staticmethod
    def from_parts(real: Any, imag: Any, name: str | None = None) -> ComplexVariable:
        """One of two eager tensors, which are named after it."""
        result = ComplexVariable(real, imag)
        result.name = unique_name.generate("_generated_var") if name is None else name
        return result

    @property
    def shape(self) -> Any:
        return self.real.shape

    @property
    def dtype(self) -> str:
        """'complex64' or 'complex128'."""
        return "complex64" if self.real.dtype == VarType.FP32 else "complex128"

    @property
    def name(self) -> dict[str, str]:
        """The names of the parts, as 'real' and 'imag'; assigning NAME makes them NAME.real and NAME.imag."""
        return {"real": self.real.name, "imag": self.imag.name}

    @name.setter
    def name(self, name: str) -> None:
        self.real.name, self.imag.name = f"{name}.real", f"{name}.imag"

    def numpy(self) -> np.ndarray:
        """A copy of the elements; StaticModeError in a program."""
        return np.asarray(self.real.numpy() + 1j * self.imag.numpy(), self.dtype)

    def __str__(self) -> str:
        return f"REAL: {self.real}IMAG: {self.imag}"

    __repr__ = __str__
