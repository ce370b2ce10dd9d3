"""CuPy's ufuncs: the loops, keywords and methods that it has, computed by NumPy's."""

from typing import Any

import numpy as np

from . import calls, indexing
from .api import API
from .machine import machine

KEYWORDS = {"out", "dtype", "casting"}
SCATTERS = {"add": "add", "maximum": "max", "minimum": "min"}
REDUCTIONS = {
    ("add", "reduce"): "sum",
    ("add", "accumulate"): "cumsum",
    ("multiply", "reduce"): "prod",
    ("multiply", "accumulate"): "cumprod",
}


class ufunc:  # noqa: N801
    """An elementwise function of arrays and numbers."""

    def __init__(self, name: str, facts: dict[str, Any]) -> None:
        self.name = f"cupy_{name}"
        self.__name__ = name
        self.nin, self.nout = facts["nin"], facts["nout"]
        self.nargs = self.nin + self.nout
        self.types: list[str] = facts["types"]
        self._methods = facts["methods"]
        self._numpy = getattr(np, name)
        self._kinds = {each.split("->")[0] for each in self.types}

    def __repr__(self) -> str:
        return f"<ufunc '{self.name}'>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        unknown = {name: value for name, value in kwargs.items() if name not in KEYWORDS}
        if unknown:
            raise TypeError(f"Wrong arguments {unknown}")
        if not self.nin <= len(args) <= self.nargs:
            raise TypeError(
                f"Wrong number of arguments for {self.name}: expected {self.nin}, got {len(args)}"
            )
        out = kwargs.pop("out", None)
        if len(args) > self.nin:
            if out is not None:
                raise ValueError("Cannot specify 'out' as both a positional and keyword argument")
            out = args[self.nin :] if self.nout > 1 else args[self.nin]
        if isinstance(out, tuple):
            if len(out) != self.nout:
                raise ValueError("The 'out' tuple must have exactly one entry per ufunc output")
            out = out[0] if self.nout == 1 else out
        operands = [self._operand(each) for each in args[: self.nin]]
        operands = _weak(operands)
        casting = kwargs.pop("casting", "same_kind")
        options = {name: value for name, value in kwargs.items() if value is not None}
        self._check_loop(operands, options.get("dtype"))
        if out is None:
            return calls.call(self._numpy, *operands, casting=casting, **options)
        if self.nout != 1:
            raise NotImplementedError("several outputs with out= are not simulated")
        if not calls.is_array(out):
            raise TypeError(f"Output arguments type must be cupy.ndarray, not {type(out)}")
        # The type of the result is known from one element of each operand.
        one = np.asarray(
            calls.quietly(self._numpy, tuple(_sample(calls.unwrapped(each)) for each in operands), options)
        )
        if not np.can_cast(one.dtype, out.dtype, casting):
            raise TypeError(
                f"Cannot cast ufunc '{self.name}' output from {one.dtype!r} to {out.dtype!r} with casting rule "
                f"'{casting}'"
            )
        calls.call_into(out, self._numpy, *operands, **options)
        return out

    def _operand(self, value: Any) -> Any:
        if calls.is_array(value):
            return value
        if isinstance(value, (np.ndarray, list, tuple, str, bytes)) or value is None:
            raise TypeError(f"Unsupported type {type(value)}")
        if not isinstance(value, (bool, int, float, complex, np.generic)):
            raise TypeError(f"Unsupported type {type(value)}")
        return value

    def _check_loop(self, operands: list[Any], dtype: Any) -> None:
        plain = [_sample(calls.unwrapped(each)) for each in operands]
        if dtype is not None:
            plain = [np.zeros((), dtype)] * len(plain)
        wanted = np.result_type(*plain)
        if len(plain) == 1 or self.__name__ != "ldexp":
            chars = [kinds[0] for kinds in self._kinds if len(kinds) == len(plain)]
            if not any(np.can_cast(wanted, np.dtype(char)) for char in chars):
                raise TypeError(f"Wrong type ({wanted}) of arguments for {self.name}")

    def at(self, a: Any, indices: Any, b: Any = None) -> None:
        if "at" not in self._methods:
            raise NotImplementedError(f"`{self.name}.at` is not supported yet")
        if self.__name__ == "subtract":
            raise NotImplementedError("use add.at with negative values")
        indexing.scatter(SCATTERS[self.__name__], a, indices, b)

    def reduce(
        self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        return getattr(array, self._reduction("reduce"))(axis, dtype, out, keepdims)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        return getattr(array, self._reduction("accumulate"))(axis, dtype, out)

    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        if self.__name__ != "add" or out is not None:
            raise NotImplementedError(f"`{self.name}.reduceat` is not supported yet")
        return calls.call(np.add.reduceat, array, indices, axis, dtype)

    def outer(self, A: Any, B: Any, **kwargs: Any) -> Any:  # noqa: N803
        left, right = self._operand(A), self._operand(B)
        if calls.is_array(left):
            left = left.reshape(left.shape + (1,) * getattr(right, "ndim", 0))
        return self(left, right, **kwargs)

    def _reduction(self, method: str) -> str:
        try:
            return REDUCTIONS[self.__name__, method]
        except KeyError:
            raise NotImplementedError(f"`{self.name}.{method}` is not supported yet") from None


def _sample(value: Any) -> Any:
    """A value that takes part in type promotion as another does."""
    return np.ones((), value.dtype) if isinstance(value, np.ndarray) else value


def _weak(operands: list[Any]) -> list[Any]:
    """Operands with NumPy scalars as Python's where CuPy 13 does not let them decide on the dtype."""
    if int(machine().options.cupy_version.split(".")[0]) >= 14:
        return operands
    ranks = [_rank(each.dtype) for each in operands if calls.is_array(each)]
    return [
        each.item() if isinstance(each, np.generic) and ranks and _rank(each.dtype) <= max(ranks) else each
        for each in operands
    ]


def _rank(dtype: np.dtype) -> int:
    return {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}.get(dtype.kind, 4)


ufuncs = {name: ufunc(name, facts) for name, facts in API["ufuncs"].items() if name in vars(np)}
