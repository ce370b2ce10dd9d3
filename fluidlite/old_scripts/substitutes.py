"""Values of old names for which Python and NumPy have no single name today."""

from __future__ import annotations

import html
import importlib.util
import inspect
import os
import platform
import re
import shutil
import sysconfig
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

NINF, PZERO, NZERO = -np.inf, 0.0, -0.0

ArgSpec = namedtuple("ArgSpec", "args varargs keywords defaults")

sctypes: dict[str, list[Any]] = {
    "int": [np.int8, np.int16, np.int32, np.int64],
    "uint": [np.uint8, np.uint16, np.uint32, np.uint64],
    "float": [np.float16, np.float32, np.float64, np.longdouble],
    "complex": [np.complex64, np.complex128, np.clongdouble],
    "others": [bool, object, bytes, str, np.void],
}


class _Casts(dict[Any, Any]):
    """`np.cast[dtype](array)`."""

    def __missing__(self, dtype: Any) -> Callable[[Any], np.ndarray]:
        return lambda array: np.asarray(array).astype(dtype)


cast = _Casts()


def in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> np.ndarray:
    """For each element of `ar1`, flattened, whether `ar2` has it."""
    return np.isin(np.ravel(ar1), ar2, assume_unique=assume_unique, invert=invert)


def asscalar(a: Any) -> Any:
    """The one element of `a` as a number."""
    return np.asarray(a).item()


def msort(a: Any) -> np.ndarray:
    """`a` sorted along its first axis."""
    return np.sort(a, axis=0)


def asfarray(a: Any, dtype: Any = np.float64) -> np.ndarray:
    """`a` as an array of floats; an integer `dtype` means float64."""
    return np.asarray(a, dtype=dtype if np.issubdtype(dtype, np.inexact) else np.float64)


def alen(a: Any) -> int:
    """The length of the first axis; 1 for a number."""
    return len(np.atleast_1d(a))


def find_common_type(array_types: Sequence[Any], scalar_types: Sequence[Any]) -> np.dtype:
    """The type of arrays and scalars together; scalars count where they are of another kind."""
    arrays = [np.dtype(each) for each in array_types]
    scalars = [np.dtype(each) for each in scalar_types]
    if not arrays or not scalars:
        return np.result_type(*arrays, *scalars)
    array, scalar = np.result_type(*arrays), np.result_type(*scalars)
    kinds = "buifcSUVO"
    return (
        scalar
        if kinds.index(scalar.kind.replace("i", "u")) > kinds.index(array.kind.replace("i", "u"))
        else array
    )


def issubclass_(arg1: Any, arg2: Any) -> bool:
    """`issubclass`, but False for objects that are no class."""
    return isinstance(arg1, type) and issubclass(arg1, arg2)


def obj2sctype(rep: Any, default: Any = None) -> Any:
    """The scalar type of a name, type or array; `default` if there is none."""
    try:
        return (rep.dtype if isinstance(rep, np.ndarray) else np.dtype(rep)).type
    except TypeError:
        return default


def issctype(rep: Any) -> bool:
    """Whether `rep` is a type of array elements."""
    return isinstance(rep, (type, np.dtype)) and obj2sctype(rep) not in (None, np.object_)


def sctype2char(sctype: Any) -> str:
    """The letter of a type."""
    return np.dtype(sctype).char


def getargspec(func: Callable[..., Any]) -> ArgSpec:
    """Names and defaults of a function's arguments; ValueError if it has keyword-only ones or annotations."""
    spec = inspect.getfullargspec(func)
    if spec.kwonlyargs or spec.annotations:
        raise ValueError("the function has keyword-only arguments or annotations: use inspect.signature")
    return ArgSpec(spec.args, spec.varargs, spec.varkw, spec.defaults)


def setcheckinterval(interval: int) -> None:
    """Without effect, as since Python 3.2."""


def getcheckinterval() -> int:
    """100, the constant value since Python 3.2."""
    return 100


def linux_distribution(*args: Any, **kwargs: Any) -> tuple[str, str, str]:
    """Name, version and code name of the Linux distribution; empty strings where there is none."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return "", "", ""
    return release.get("NAME", ""), release.get("VERSION_ID", ""), release.get("VERSION_CODENAME", "")


dist = linux_distribution


def escape(s: str, quote: bool | None = None) -> str:
    """`s` with &, < and > as entities, and double quotes if wanted."""
    text = html.escape(s, quote=False)
    return text.replace('"', "&quot;") if quote else text


def find_loader(name: str, path: Any = None) -> Any:
    """The loader of the module `name`; None if there is none."""
    spec = importlib.util.find_spec(name)
    return spec.loader if spec else None


def makeSuite(testCaseClass: Any, prefix: str = "test", *args: Any, **kwargs: Any) -> Any:  # noqa: N802, N803
    """The tests of a class."""
    import unittest

    loader = unittest.TestLoader()
    loader.testMethodPrefix = prefix
    return loader.loadTestsFromTestCase(testCaseClass)


def strtobool(val: str) -> int:
    """1 for y, yes, t, true, on and 1; 0 for n, no, f, false, off and 0; ValueError for another text."""
    text = val.lower()
    if text in ("y", "yes", "t", "true", "on", "1"):
        return 1
    if text in ("n", "no", "f", "false", "off", "0"):
        return 0
    raise ValueError(f"expected a truth value such as yes or no, got {val!r}")


def copy_tree(src: str, dst: str, *args: Any, **kwargs: Any) -> list[str]:
    """Copy a folder into `dst`, which may exist; returns the files written."""
    shutil.copytree(src, dst, dirs_exist_ok=True)
    parts = ((os.path.join(dst, os.path.relpath(folder, src)), files) for folder, _, files in os.walk(src))
    return [os.path.normpath(os.path.join(folder, name)) for folder, files in parts for name in files]


def mkpath(name: str, mode: int = 0o777, *args: Any, **kwargs: Any) -> list[str]:
    """Make a folder and those above it; returns it if it is new."""
    new = not os.path.isdir(name)
    os.makedirs(name, mode, exist_ok=True)
    return [name] if new else []


def remove_tree(directory: str, *args: Any, **kwargs: Any) -> None:
    """Remove a folder with all that is in it."""
    shutil.rmtree(directory)


def get_python_lib(plat_specific: bool = False, standard_lib: bool = False, prefix: str | None = None) -> str:
    """The folder of installed packages, or of the standard library."""
    name = (
        ("platstdlib" if plat_specific else "stdlib")
        if standard_lib
        else "platlib"
        if plat_specific
        else "purelib"
    )
    return sysconfig.get_path(name, vars={"base": prefix, "platbase": prefix} if prefix else None)


def get_python_inc(plat_specific: bool = False, prefix: str | None = None) -> str:
    """The folder of Python's C headers."""
    name = "platinclude" if plat_specific else "include"
    return sysconfig.get_path(name, vars={"base": prefix, "platbase": prefix} if prefix else None)


def itemset(array: np.ndarray, *args: Any) -> None:
    """Set an element: `itemset(value)`, `itemset(flat_index, value)` or `itemset(index, value)`."""
    *index, value = args
    if len(index) == 1 and isinstance(index[0], (int, np.integer)):
        array.flat[index[0]] = value
    else:
        array[index[0] if index else ()] = (
            value if index or array.ndim == 0 else np.reshape(value, array.shape)
        )


def newbyteorder(array: np.ndarray, new_order: Any = "S") -> np.ndarray:
    """The same bytes read in another order."""
    return array.view(array.dtype.newbyteorder(new_order))


def unescape(parser: Any, s: str) -> str:
    """`s` with its HTML entities resolved."""
    return html.unescape(s)


def append(first: Any, other: Any, ignore_index: bool = False, sort: bool = False, **kwargs: Any) -> Any:
    """The rows of a pandas object and of another one, a list of them, or a dict or Series as a row."""
    import pandas

    others = other if isinstance(other, (list, tuple)) else [other]
    if isinstance(first, pandas.DataFrame):
        others = [each if isinstance(each, pandas.DataFrame) else pandas.DataFrame([each]) for each in others]
        kwargs["sort"] = sort
    return pandas.concat([first, *others], ignore_index=ignore_index, **kwargs)


_IMAGES = {
    "jpeg": rb".{6}(JFIF|Exif)|\xff\xd8\xff\xdb",
    "png": rb"\x89PNG\r\n\x1a\n",
    "gif": rb"GIF8[79]a",
    "tiff": rb"MM|II",
    "rgb": rb"\x01\xda",
    "pbm": rb"P[14][ \t\n\r]",
    "pgm": rb"P[25][ \t\n\r]",
    "ppm": rb"P[36][ \t\n\r]",
    "rast": rb"\x59\xa6\x6a\x95",
    "xbm": rb"#define ",
    "bmp": rb"BM",
    "webp": rb"RIFF.{4}WEBP",
    "exr": rb"\x76\x2f\x31\x01",
}
"""How files of each format of images begin."""


def what(file: Any, h: bytes | None = None) -> str | None:
    """The format of an image by how it begins, such as "jpeg", or None: of `h`, else of a path or an open file."""
    if h is None and isinstance(file, (str, os.PathLike)):
        with open(file, "rb") as opened:
            h = opened.read(32)
    elif h is None:
        place = file.tell()
        h = file.read(32)
        file.seek(place)
    return next((kind for kind, begin in _IMAGES.items() if re.match(begin, h, re.DOTALL)), None)
