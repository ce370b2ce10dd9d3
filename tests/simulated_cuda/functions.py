"""The functions of the `cupy` namespace: those that CuPy has, with the parameters that it has, computed by NumPy."""

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from . import calls, creation, indexing, transfer
from .api import API, signature
from .ufuncs import ufuncs

# Functions that look at arrays without computing with them.
PLAIN = frozenset(
    "ndim shape size result_type can_cast promote_types min_scalar_type broadcast_shapes common_type isscalar "
    "iscomplexobj isrealobj may_share_memory shares_memory isfortran issubdtype iterable base_repr binary_repr "
    "get_printoptions set_printoptions printoptions isdtype find_common_type typename".split()
)
# Functions whose results are views of their arguments, as far as shapes and strides allow.
VIEWS = frozenset(
    "reshape transpose ravel squeeze swapaxes moveaxis rollaxis expand_dims broadcast_to broadcast_arrays diagonal "
    "flip fliplr flipud rot90 split array_split hsplit vsplit dsplit atleast_1d atleast_2d atleast_3d permute_dims "
    "real imag matrix_transpose as_strided sliding_window_view".split()
)
# Functions that have to know values of the device before they can go on.
WAITING = frozenset(
    "nonzero argwhere flatnonzero unique unique_all unique_counts unique_inverse unique_values compress extract "
    "intersect1d setdiff1d setxor1d union1d trim_zeros bincount array2string array_repr array_str asarray_chkfinite "
    "save savez savez_compressed savetxt delete roots digitize apply_along_axis select piecewise packbits "
    "histogram histogram2d histogramdd".split()
)
PRODUCTS = frozenset("dot inner outer vdot tensordot einsum matmul kron cov corrcoef".split())
# Parameters that must be arrays of the device.
ARRAYS = frozenset("a arr ary array x x1 x2 m A tup arrays v y condition operands q p a1 a2 arys".split())
HOST_ONLY = frozenset("load loadtxt genfromtxt fromfile frombuffer fromstring fromiter fromfunction".split())


def wrapper(name: str, function: Callable[..., Any], parameters: Any) -> Callable[..., Any]:
    """A function of CuPy's parameters that computes with NumPy's function."""
    accepted = signature(parameters)
    waits, products = name in WAITING, name in PRODUCTS

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        named = {}
        if accepted is not None:
            named = accepted.bind(*args, **kwargs).arguments
        if name in PLAIN:
            return function(*calls.unwrapped(args), **calls.unwrapped(kwargs))
        calls.refuse_numpy(list(named.values()) if accepted is not None else [args, kwargs])
        for parameter, value in named.items():
            _check_argument(name, parameter, value)
        if name == "where" and len(args) + len(kwargs) == 1:
            return calls.call(np.nonzero, *args, waits=True)
        out = named.get("out")
        if out is not None:
            return _into(name, function, out, args, kwargs, list(named))
        blas = "cuBLAS" if products and _products(name, named) else ""
        return calls.call(function, *args, waits=waits, blas=blas, view=name in VIEWS, **kwargs)

    return run


def _products(name: str, named: dict[str, Any]) -> bool:
    return name != "einsum" or sum(calls.is_array(each) for each in named.get("operands", ())) > 1


def _check_argument(name: str, parameter: str, value: Any) -> None:
    if parameter == "kind" and name in ("sort", "argsort") and value not in (None, "stable"):
        raise ValueError("kind can only be None or 'stable'")
    if parameter in ARRAYS and isinstance(value, list) and not any(True for _ in calls.arrays_in(value)):
        raise TypeError(
            f"{name}() wants arrays of the device for '{parameter}', not a list of {_types(value)}"
        )
    if parameter in ("axis", "shape", "axes", "newshape") and calls.is_array(value):
        raise TypeError(f"{name}(): an array of the device is no {parameter}")


def _types(value: list[Any]) -> str:
    return ", ".join(sorted({type(each).__name__ for each in value})) or "nothing"


def _into(
    name: str, function: Callable[..., Any], out: Any, args: tuple, kwargs: dict[str, Any], names: list[str]
) -> Any:
    """The function with `out=`: what it computes, cast into `out`."""
    if isinstance(out, tuple):
        (out,) = out
    if not calls.is_array(out):
        raise TypeError(f"{name}(): out must be an array of the device, not {type(out)}")
    position = names.index("out")
    rest = tuple(None if i == position else each for i, each in enumerate(args))
    options = {key: value for key, value in kwargs.items() if key != "out"}
    rule = options.get("casting") or "same_kind"
    kind = _result_dtype(function, rest, options)
    if not np.can_cast(kind, out.dtype, rule):
        raise TypeError(
            f"Cannot cast {name} output from {kind!r} to {out.dtype!r} with casting rule '{rule}'"
        )
    options.pop("casting", None)
    calls.call_into(out, function, *rest, blas="cuBLAS" if name in PRODUCTS else "", **options)
    return out


def _result_dtype(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> np.dtype:
    result = calls.quietly(function, calls.unwrapped(args), calls.unwrapped(kwargs))
    return np.asarray(result).dtype


def matmul(x1: Any, x2: Any, /, out: Any = None, **kwargs: Any) -> Any:
    """`cupy.matmul`, whose products are cuBLAS calls."""
    for each in (x1, x2):
        if not calls.is_array(each):
            raise TypeError(f"Unsupported type {type(each)}")
    if kwargs.keys() - {"casting", "order", "dtype", "subok", "axes", "axis", "keepdims"}:
        raise TypeError(f"Wrong arguments {kwargs}")
    if out is None:
        return calls.call(np.matmul, x1, x2, blas="cuBLAS", **kwargs)
    calls.call_into(out, np.matmul, x1, x2, blas="cuBLAS", **kwargs)
    return out


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = None) -> None:
    """`cupy.copyto`."""
    calls.refuse_numpy([dst, src, where])
    if calls.is_array(src) and not np.can_cast(src.dtype, dst.dtype, casting):  # type: ignore[arg-type]
        raise TypeError(f"Cannot cast {src.dtype} to {dst.dtype} in {casting} casting mode")
    if where is None:
        calls.change(lambda d, s: np.copyto(d, s, casting="unsafe"), dst, src)
    else:
        calls.change(lambda d, s, w: np.copyto(d, s, casting="unsafe", where=w), dst, src, where)


def concatenate(
    tup: Any, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    """`cupy.concatenate`, of arrays of the device only."""
    parts = list(tup)
    if not all(calls.is_array(part) for part in parts):
        raise TypeError("Only cupy arrays can be concatenated")
    if out is None:
        return calls.call(np.concatenate, parts, axis, dtype=dtype, casting=casting)
    calls.call_into(out, np.concatenate, parts, axis, dtype=dtype, casting=casting)
    return out


def get_array_module(*args: Any) -> Any:
    """The simulated `cupy` if one of the values is of the device, NumPy otherwise."""
    import sys

    return sys.modules["cupy"] if any(True for _ in calls.arrays_in(args)) else np


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """`cupy.repeat`, which takes no array of counts."""
    if calls.is_array(repeats) or isinstance(repeats, np.ndarray):
        raise ValueError("`repeats` must be int or sequence")
    return calls.call(np.repeat, a, repeats, axis)


OWN: dict[str, Callable[..., Any]] = {
    "matmul": matmul,
    "copyto": copyto,
    "concatenate": concatenate,
    "concat": concatenate,
    "get_array_module": get_array_module,
    "repeat": repeat,
    "take": indexing.take,
    "take_along_axis": indexing.take_along_axis,
    "asnumpy": transfer.asnumpy,
    "array": creation.array,
    "asarray": creation.asarray,
    "asanyarray": creation.asarray,
    "ascontiguousarray": creation.ascontiguousarray,
    "asfortranarray": creation.asfortranarray,
    "empty": creation.empty,
    "empty_like": creation.empty_like,
    "full_like": creation.full_like,
}


@functools.cache
def namespace(module: str = "") -> dict[str, Any]:
    """The functions of `cupy` or of one of its modules, by name."""
    if not module:
        made: dict[str, Any] = dict(ufuncs)
        source, recorded = np, API["functions"]
    else:
        made = {}
        if module not in API:
            return made
        source, recorded = functools.reduce(getattr, module.split("."), np), API[module]
    for name, parameters in recorded.items():
        if not module and name in OWN:
            made[name] = OWN[name]
        elif name in made or name in HOST_ONLY or not callable(vars(source).get(name)):
            continue
        elif module == "linalg":
            made[name] = linalg(name, getattr(source, name), parameters)
        else:
            made[name] = wrapper(name, getattr(source, name), parameters)
    return made


def linalg(name: str, function: Callable[..., Any], parameters: Any) -> Callable[..., Any]:
    """A function of `cupy.linalg`, which waits for what the solver says, and does not work on half floats."""
    accepted = signature(parameters)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if accepted is not None:
            accepted.bind(*args, **kwargs)
        calls.refuse_numpy([args, kwargs])
        if not args or not calls.is_array(args[0]):
            raise np.linalg.LinAlgError(
                f"{name}() wants an array of the device, not {type(args[0]).__name__}"
            )
        if name == "norm":
            return calls.call(function, *args, **kwargs)
        if args[0].dtype == np.float16:
            raise TypeError("unsupported dtype float16")
        return calls.call(function, *args, waits=True, blas="cuSOLVER", **kwargs)

    return run


@functools.cache
def special() -> dict[str, Any]:
    """`cupyx.scipy.special`, as far as SciPy has the same."""
    source = importlib.import_module("scipy.special")
    return {name: unary(name, getattr(source, name)) for name in API["special"] if hasattr(source, name)}


def unary(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """An elementwise function of arrays of the device, which computes in single precision for float32."""

    def run(*args: Any) -> Any:
        for value in args:
            if not (calls.is_array(value) or isinstance(value, (int, float, np.generic))):
                raise TypeError(f"Unsupported type {type(value)}")
        return calls.call(function, *args)

    run.__name__ = name
    return run


def cupyx() -> dict[str, Any]:
    """The scatter functions of `cupyx`, and its `errstate`."""
    scatters = {
        f"scatter_{name}": functools.partial(indexing.scatter, name) for name in ("add", "max", "min")
    }
    return {**scatters, "errstate": errstate}


class errstate:  # noqa: N801
    """`cupyx.errstate`, which knows of linalg and fallback_mode only."""

    def __init__(self, *, linalg: str | None = None, fallback_mode: str | None = None, **others: Any) -> None:
        if others:
            raise NotImplementedError(f"cupyx.errstate has no part in {', '.join(others)}")

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: Any) -> None:
        return None
