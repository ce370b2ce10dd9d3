"""`Tensor` and `Parameter`: values that operators work on at once (`fluid.core.VarBase`, `paddle.Tensor`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .._ext import eager as core
from ..backend import dlpack
from ..base import unique_name
from ..base.arrays import plain, plain_copy
from ..base.dtypes import VarType, to_vartype
from ..base.errors import EnforceNotMet
from ..base.selected_rows import SelectedRows
from ..executor.lod_tensor import LoDTensor
from ..framework import math_ops, mode, tracing
from ..framework.math_ops import VariableMath
from . import autograd, dispatch, placing
from .elements import Elements, PrivateNames, SharedElements
from .gpu import Located


class Tensor(Elements, Located, PrivateNames, VariableMath):
    """An array for eager operators, with its node on the tape.

    Args:
        array: array of one of Fluid's types, of NumPy or of a GPU; taken as it is, without a copy, unless native code
            could not read it there (`base/arrays.py`).
        name: by default one that counts the tensors made.
        stop_gradient: whether `backward` stops here.
        persistable: True for state (parameters, statistics).

    `shape` is a list, `dtype` a `VarType`. Follows `fluid.core.VarBase` of 1.8 and `paddle.Tensor` of 2.0.
    """

    stands_for = "variable"

    def __init__(
        self,
        array: Any,
        name: str | None = None,
        stop_gradient: bool = True,
        persistable: bool = False,
    ) -> None:
        self.array = plain(array) if isinstance(array, np.ndarray) else array
        if name is None:
            self.take_number()
            name = f"generated_var_{self.serial}"
        self.given_name: str | None = name
        self.stop_gradient = stop_gradient
        self.persistable = persistable

    @staticmethod
    def _new(array: Any, name: str | None = None, stop_gradient: bool = True) -> Tensor:
        """A tensor, for modules that this one imports."""
        return Tensor(array, name, stop_gradient)

    @property
    def name(self) -> str:
        if self.given_name is None:
            self.given_name = unique_name.generate("tmp") if self.serial < 0 else f"tmp_{self.serial}"
        return self.given_name

    @name.setter
    def name(self, name: str) -> None:
        self.given_name = name

    @property
    def shape(self) -> list[int]:
        return list(self.array.shape)

    @property
    def dtype(self) -> VarType:
        return to_vartype(self.array.dtype)

    @property
    def type(self) -> VarType:
        return VarType.LOD_TENSOR

    @property
    def lod_level(self) -> int:
        return 0

    @property
    def ndim(self) -> int:
        return int(self.array.ndim)

    @property
    def size(self) -> int:
        return int(self.array.size)

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor was made by the user and not computed from tensors with gradients."""
        return self.node is None

    @property
    def grad(self) -> Tensor | None:
        """The gradient as a tensor that shares its memory, None if there is none yet."""
        gradient = self.grad_array
        return None if gradient is None else Tensor(placing.dense(gradient), name=self.name + "@GRAD")

    @grad.setter
    def grad(self, value: Tensor | np.ndarray | None) -> None:
        array = value.array if isinstance(value, Tensor) else value
        if array is not None and array.shape != self.array.shape:
            raise ValueError(
                f"the gradient of {self.name!r} must have shape {self.shape}, got {list(array.shape)}"
            )
        self.grad_array = None if array is None else placing.to_device_of(array, self.array)

    def gradient(self) -> Any:
        """A copy of the gradient as a NumPy array; None before `backward`, zeros after `clear_gradient`.

        For a sparse gradient: the tuple (values, rows), None after `clear_gradient`. Zeros for a result that nothing
        was computed from, of an operator with another one that had a gradient.
        """
        found = self.grad_array
        if found is None and self.node is not None and self.node.out_grads is not None:
            found = self.zeros_alike()
        if found is None:
            return None
        if isinstance(found, SelectedRows):
            return (placing.as_copy(found.values), placing.as_copy(found.rows))
        return placing.as_copy(found)

    def clear_gradient(self) -> None:
        """Set the gradient to zeros, as Fluid does; nothing if there is none. A sparse one goes."""
        if isinstance(self.grad_array, SelectedRows):
            self.grad_array = None
        elif self.node is None and self.grad_array is not None:
            self.clear_leaf()
        elif self.grad_array is not None:
            self.grad_array = self.zeros_alike()

    clear_grad = clear_gradient

    def backward(self, backward_strategy: Any = None, retain_graph: bool = False) -> None:
        """Compute the gradient of this tensor with respect to every leaf and tensor that still exists.

        Starts from ones. Gradients of leaves add up over calls until they are cleared; in Fluid's dygraph mode (under
        `fluid.dygraph.guard`) each call replaces them, as in 1.8. The tape is released unless
        `retain_graph`. `backward_strategy`: accepted; a tensor in its place, as Paddle 2.0 has it, is the gradient to
        start from, of this tensor's shape. Does nothing for a tensor without history.
        """
        if isinstance(backward_strategy, Tensor):
            autograd.backward([self], [backward_strategy], retain_graph)
            return
        autograd.backward([self], None, retain_graph)

    def detach(self) -> Tensor:
        """A copy of the elements without history; results on a GPU are not copied."""
        copied = self.persistable or not placing.on_device(self.array)
        return self._named_copy(placing.duplicate(self.array) if copied else self.array)

    def _named_copy(self, array: Any) -> Tensor:
        """A tensor of `array` with the name of the next copy of this one."""
        number = self.__dict__.get("_copies", 0)
        self._copies = number + 1
        return self._noted(Tensor(array, f"{self.name}{number}"))

    def _noted(self, twin: Tensor) -> Tensor:
        """Record that `twin` has a copy of the elements, if a record is on; returns it."""
        record = tracing.record.get()
        if record is not None:
            record.copied(self, twin)
        return twin

    def take_over(self, other: Tensor) -> None:  # type: ignore[override]
        """Take the array of `other` and its position on the tape."""
        record = tracing.record.get()
        if record is not None:
            record.becomes(self, other)
        super().take_over(other)

    def be_generated(self) -> None:
        """Rename `tmp_N` to `generated_var_N`, Fluid's name for results with a variable made in advance."""
        if self.serial >= 0:
            self.given_name = f"generated_var_{self.serial}"

    def clone(self) -> Tensor:
        """A copy, recorded for gradients."""
        return self._applied("assign", {})

    def set_value(self, value: Any) -> None:
        """Overwrite the elements, keeping the memory.

        `value`: a NumPy array or tensor. Raises AssertionError if its shape or dtype differs, as Fluid does.
        """
        array = value.array if isinstance(value, (Tensor, LoDTensor)) else value
        array = array if placing.on_device(array) else np.asarray(array)
        self.check_fits(array)
        if isinstance(self.array, np.ndarray) and not self.array.flags.writeable:
            self.array = self.array.copy()
        record = tracing.record.get()
        if record is not None:
            record.changes(self)
        placing.overwrite(self.array, array)

    def check_fits(self, array: Any, source: str = "") -> None:
        """Raise AssertionError, as Fluid, unless `array` has the shape and dtype of this tensor; names its `source`."""
        if array.shape != self.array.shape:
            raise AssertionError(
                f"Variable Shape not match, Variable [ {self.name} ] need tensor with shape {self.array.shape} "
                f"but load set tensor with shape {array.shape}{source}"
            )
        if array.dtype != self.array.dtype:
            raise AssertionError(
                f"Variable dtype not match, Variable [ {self.name} ] need tensor with dtype {self.array.dtype} "
                f"but load tensor with dtype {array.dtype}{source}"
            )

    def astype(self, dtype: Any) -> Tensor:
        """This tensor converted to `dtype`."""
        kind = to_vartype(dtype)
        return self._applied("cast", {"in_dtype": int(self.dtype), "out_dtype": int(kind)})

    def value(self) -> Tensor:
        """This tensor, which has `get_tensor`."""
        return self

    def __str__(self) -> str:
        """As the Fluid of `fluid.dygraph.guard` prints it there, otherwise as Paddle 2.0 does."""
        if not mode.in_dygraph_mode():
            return repr(self)
        return f"name {self.name}, dtype: {self.dtype} shape: {self.shape} {self.get_tensor()}"

    def get_tensor(self) -> LoDTensor:
        """The elements as a LoDTensor that shares their memory; levels of detail that it is given warn."""
        return SharedElements.wrap(self.array, [])

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> autograd.HookHandle:
        """Call `hook` with the gradient of this tensor in each backward pass; its result replaces the gradient.

        Raises RuntimeError for a tensor without gradients.
        """
        return autograd.register_hook(self, hook)

    def _temporary(self, dtype: VarType, key: str = "tmp") -> Any:
        tracer = tracing.current()
        return empty() if tracer is None else tracer.stand_in(self)._temporary(dtype, key)

    def _append(self, op_type: str, inputs: dict[str, Any], out: Tensor, attrs: dict[str, Any]) -> None:  # type: ignore[override]
        if isinstance(out, Tensor):
            out.take_over(apply(op_type, inputs, ("Out",), attrs))
        else:
            super()._append(op_type, inputs, out, attrs)

    def _applied(self, op_type: str, attrs: dict[str, Any]) -> Tensor:
        form = dispatch.cached_form(op_type, _X, _OUT, attrs)
        result: Tensor = form(self)
        return result

    def _both(self, op_type: str, other: Tensor) -> Tensor:
        form = _binary_forms.get(op_type)
        if form is None:
            form = _binary_forms[op_type] = dispatch.form(
                op_type, (("X", 1), ("Y", 1)), (("Out", 1),), {"axis": -1}
            )
        result: Tensor = form(self, other)
        return result

    def _binary(self, op_type: str, other: Any, swapped: bool = False) -> Any:
        if isinstance(other, Tensor) and other.array.dtype == self.array.dtype:
            return other._both(op_type, self) if swapped else self._both(op_type, other)
        if isinstance(other, np.ndarray):
            other = Tensor(np.ascontiguousarray(other, dtype=self.array.dtype))
            return other._both(op_type, self) if swapped else self._both(op_type, other)
        return super()._binary(op_type, other, swapped)

    def _scaled(self, scale: float, bias: float) -> Tensor:  # type: ignore[override]
        math_ops.check_whole(self, scale, bias)
        return self._applied("scale", {"scale": float(scale), "bias": float(bias), "bias_after_scale": True})

    def __matmul__(self, other: Tensor) -> Tensor:
        return apply("matmul", {"X": self, "Y": other})  # type: ignore[no-any-return]

    def _drops_with_steps(self) -> bool:
        return not mode.in_dygraph_mode()

    def __getitem__(self, index: Any) -> Tensor:  # type: ignore[override]
        if isinstance(index, (int, np.integer)) and self.array.ndim and not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range for a tensor of shape {self.shape}")
        return super().__getitem__(index)  # type: ignore[return-value]

    def __iter__(self) -> Iterator[Tensor]:
        for index in range(len(self)):
            yield self[index]

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if self.node is not None:
            raise RuntimeError(
                f"tensor {self.name!r} was computed from others and cannot be copied with its history; "
                "copy detach() of it"
            )
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.array = placing.duplicate(self.array)
        twin.stop_gradient, twin.persistable = self.stop_gradient, self.persistable
        twin.given_name = unique_name.generate(self.name) if self.given_name is not None else None
        twin.__dict__.update(self.__dict__)
        return self._noted(twin)

    def __reduce__(self) -> Any:
        raise TypeError("tensors are not pickled: save tensor.numpy(), or a state_dict() with save_dygraph")

    __hash__ = object.__hash__


_X = (("X", 1),)
_OUT = ("Out",)
_binary_forms: dict[str, core.Form] = {}


class Parameter(Tensor):
    """A trainable tensor (`fluid.framework.ParamBase`, `paddle.Parameter`).

    `optimize_attr['learning_rate']` multiplies the optimizer's rate.
    """

    stands_for = "parameter"

    def __init__(self, array: Any, name: str, trainable: bool = True, **options: Any) -> None:
        stop_gradient = not trainable and not mode.in_dygraph_mode()
        super().__init__(array, name, stop_gradient=stop_gradient, persistable=True)
        self._trainable = trainable
        self.optimize_attr = options.get("optimize_attr") or {"learning_rate": 1.0}
        self.regularizer = options.get("regularizer")
        self.gradient_clip_attr = options.get("gradient_clip_attr")
        self.do_model_average = options.get("do_model_average")
        self.need_clip = options.get("need_clip", True)
        self.is_distributed = False

    @property
    def trainable(self) -> bool:
        """Whether optimizers change it.

        Under `fluid.dygraph.guard` gradients are computed for it nevertheless, as in Fluid; with the names of
        Paddle 2.0 it is the opposite of `stop_gradient`.
        """
        return self._trainable if mode.in_dygraph_mode() else not self.stop_gradient

    @trainable.setter
    def trainable(self, trainable: bool) -> None:
        self._trainable = bool(trainable)
        if not mode.in_dygraph_mode():
            self.stop_gradient = not trainable

    def __repr__(self) -> str:
        return f"Parameter {self.name}: {super().__repr__()}"


class NoValue:
    """Stands for the array of a `DeclaredTensor`; reading anything of it raises EnforceNotMet."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        raise EnforceNotMet(
            f"{self._name!r} has no value: fluid.data or create_tensor declared it in dygraph mode, where nothing is "
            "fed. Make tensors with fluid.dygraph.to_variable(array), write it with layers.assign, or build the "
            "program outside of dygraph.guard()"
        )


def empty() -> Tensor:
    """A tensor without a value, for `take_over`."""
    return Tensor.__new__(Tensor)


def apply(
    op_type: str,
    inputs: Mapping[str, Any],
    outputs: Sequence[str | tuple[str, int]] = ("Out",),
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """Run operator `op_type` now.

    `inputs`: tensors or lists of them by slot, None or an empty list for one left out; `outputs`: slots wanted,
    `(slot, n)` for a list.
    Returns one tensor, or a tuple of them in the order of `outputs`. What is recorded depends on the inputs'
    `stop_gradient` and on `no_grad`. Raises the operator's error for inputs that do not fit.
    """
    slots = []
    tensors: list[Any] = []
    for slot, value in inputs.items():
        if value is None:
            continue
        if isinstance(value, (list, tuple)):
            if not value:
                continue
            slots.append((slot, len(value)))
            tensors += value
        else:
            slots.append((slot, 1))
            tensors.append(value)
    results = dispatch.cached_form(op_type, tuple(slots), tuple(outputs), attrs).invoke(tensors)
    return results[0] if len(results) == 1 else tuple(results)


def apply_into(
    op_type: str, inputs: dict[str, Any], outputs: dict[str, Any], attrs: Mapping[str, Any] | None = None
) -> None:
    """Run operator `op_type` and assign its results to the tensors in `outputs`, as `put` does."""
    targets: list[Tensor] = []
    wanted: list[tuple[str, int]] = []
    for slot, value in outputs.items():
        tensors = list(value) if isinstance(value, (list, tuple)) else [value]
        wanted.append((slot, len(tensors)))
        targets += tensors
    results = apply(op_type, inputs, wanted, attrs)
    for target, result in zip(targets, results if isinstance(results, tuple) else (results,), strict=True):
        put(target, result)


def put(target: Tensor, result: Tensor) -> None:
    """Assign a result to `target`; persistable tensors keep memory that fits it, as others may share it."""
    mine, array = target.array, result.array
    if array is None:
        return
    kept = target.persistable and mine is not None and type(mine) is not NoValue
    if not kept or mine.shape != array.shape or mine.dtype != array.dtype:
        target.take_over(result)
        return
    record = tracing.record.get()
    if record is not None:
        record.becomes(target, result)
    if array is not mine:
        placing.overwrite(mine, array)


def to_variable(value: Any, name: str | None = None, zero_copy: bool | None = None) -> Tensor:
    """A tensor with a copy of a NumPy array (`fluid.dygraph.to_variable`); tensors are returned as they are.

    It is on the device of `dygraph.guard(place)` or `paddle.set_device`, copies of CuPy arrays on theirs. Tensors of
    other libraries are imported by DLPack and copied. Raises TypeError for anything else, and for element types that
    Fluid does not have.
    """
    if isinstance(value, Tensor):
        return value
    if hasattr(value, "__dlpack_device__") and not isinstance(value, (np.ndarray, np.generic, LoDTensor)):
        value = value if placing.on_device(value) else _taken(value)
    if placing.on_device(value):
        return Tensor(placing.adopt(value), name)
    if not isinstance(value, np.ndarray):
        raise TypeError(
            "The type of input value is invalid, expected type is 'ndarray' or 'Variable', "
            f"but received {type(value)}."
        )
    array = plain_copy(value)
    to_vartype(array.dtype)
    return Tensor(placing.to_default_device(array), name)


def _taken(value: Any) -> Any:
    """The memory of another library's tensor as an array."""
    try:
        return dlpack.from_external(value)
    except (BufferError, RuntimeError) as error:
        raise TypeError(
            f"a {type(value).__module__}.{type(value).__name__} cannot be made a tensor: {error}"
        ) from None


# Fluid's names of the classes, which scripts print.
Tensor.__name__, Parameter.__name__ = "VarBase", "ParamBase"
