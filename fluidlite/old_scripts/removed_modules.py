"""Removed classes and functions: of `distutils.version`, `urllib.request.URLopener`, `imp`; pictures of
`scipy.misc`.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import sys
import tempfile
import urllib.error
import urllib.request
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.storage.files import atomic_writer
from .finder import for_user
from .notes import installed

if TYPE_CHECKING:
    from PIL import Image


@functools.total_ordering
class LooseVersion:
    """A version of any form; numbers in it compare as numbers. `version` is the list of its parts."""

    def __init__(self, vstring: str | None = None) -> None:
        if vstring:
            self.parse(vstring)

    def parse(self, vstring: str) -> None:
        """Take the version `vstring`."""
        self.vstring = vstring
        parts = re.findall(r"\d+|[a-z]+|[^\d a-z.]+", vstring)
        self.version: list[int | str] = [int(part) if part.isdigit() else part for part in parts]

    def __str__(self) -> str:
        return self.vstring

    def __repr__(self) -> str:
        return f"{type(self).__name__} ('{self}')"

    def _key(self) -> list[int | str]:
        return self.version

    def _other(self, other: object) -> LooseVersion | None:
        return (
            type(self)(other)
            if isinstance(other, str)
            else other
            if isinstance(other, LooseVersion)
            else None
        )

    def __eq__(self, other: object) -> bool:
        found = self._other(other)
        return NotImplemented if found is None else self._key() == found._key()

    def __lt__(self, other: object) -> bool:
        found = self._other(other)
        return NotImplemented if found is None else self._key() < found._key()

    __hash__ = None  # type: ignore[assignment]


class StrictVersion(LooseVersion):
    """Two or three numbers and perhaps a or b with a number for versions before; ValueError for another form."""

    def parse(self, vstring: str) -> None:
        """Take the version `vstring`."""
        found = re.fullmatch(r"(\d+)\.(\d+)(?:\.(\d+))?(?:([ab])(\d+))?", vstring)
        if found is None:
            raise ValueError(f"expected a version such as 1.2 or 1.2.3b1, got {vstring!r}")
        self.vstring = vstring
        first, second, third, letter, number = found.groups()
        self.version = [int(first), int(second), int(third or 0), letter or "~", int(number or 0)]


class URLopener:
    """Opens URLs and downloads them.

    Args:
        proxies: scheme -> URL of a proxy; by default those of the environment.
    """

    version = "Python-urllib/{}.{}".format(*sys.version_info)
    """The value of the header User-Agent; subclasses override it."""

    def __init__(self, proxies: Any = None, **x509: Any) -> None:
        self.addheaders = [("User-Agent", self.version), ("Accept", "*/*")]
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies))

    def addheader(self, *args: str) -> None:
        """Send a header, given as its name and its value, with all requests."""
        self.addheaders.append((args[0], args[1]))

    def open(self, fullurl: str, data: bytes | None = None) -> Any:
        """The response to a request, whose content may be read; OSError if there is none."""
        return self._opener.open(urllib.request.Request(fullurl, data, dict(self.addheaders)))

    def retrieve(
        self, url: str, filename: str | None = None, reporthook: Any = None, data: bytes | None = None
    ) -> tuple[str, Any]:
        """Download `url`, to a temporary file by default; returns the name of the file and the headers of the response.

        `reporthook(blocks, bytes of a block, bytes of all)` reports progress; -1 for an unknown size.
        """
        with self.open(url, data) as response:
            if not filename:
                handle, filename = tempfile.mkstemp()
                os.close(handle)
            size, blocks, done = 1 << 13, 0, 0
            whole = int(response.headers.get("Content-Length", -1))
            with atomic_writer(filename, folders=False) as file:
                if reporthook is not None:
                    reporthook(blocks, size, whole)
                while block := response.read(size):
                    file.write(block)
                    blocks, done = blocks + 1, done + len(block)
                    if reporthook is not None:
                        reporthook(blocks, size, whole)
                if done < whole:
                    message = f"retrieval incomplete: got only {done} out of {whole} bytes"
                    raise urllib.error.ContentTooShortError(message, (filename, response.headers))
            return filename, response.headers

    def close(self) -> None:
        """Without effect."""


FancyURLopener = URLopener


def load_source(name: str, pathname: str, file: Any = None) -> ModuleType:
    """Load the file `pathname` as module `name`; a loaded module is executed anew."""
    spec = importlib.util.spec_from_file_location(name, pathname)
    if spec is None:
        raise ImportError(f"{pathname} is no Python source", name=name, path=pathname)
    return _load(spec)


def find_module(name: str, path: Any = None) -> tuple[None, str | None, ModuleSpec]:
    """The arguments of `load_module` for the module `name`; ImportError if there is none."""
    spec = PathFinder.find_spec(name, path) if path is not None else importlib.util.find_spec(name)
    if spec is None:
        raise ImportError(f"No module named {name!r}", name=name)
    return None, spec.origin, spec


def load_module(name: str, file: Any, filename: str | None, details: Any) -> ModuleType:
    """Load the result of `find_module` as module `name`; a loaded module is executed anew."""
    if not isinstance(details, ModuleSpec):
        raise TypeError(f"load_module takes what find_module returned, got {details!r}")
    spec = importlib.util.spec_from_file_location(name, details.origin) if details.name != name else details
    return _load(spec or details)


def load_by(loader: Any, fullname: str = "") -> ModuleType:
    """Load the module of a loader, or the one called `fullname`; a loaded module is executed anew."""
    spec = importlib.util.spec_from_loader(fullname or loader.name, loader)
    if spec is None:
        raise ImportError(f"{loader!r} has no module {fullname!r}", name=fullname)
    return _load(spec)


def _load(spec: ModuleSpec) -> ModuleType:
    if spec.origin is not None and not installed(spec.origin):
        spec.loader = for_user(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    if spec.loader is not None:
        spec.loader.exec_module(module)
    return module


_RESAMPLING = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "cubic": 3}


def bytescale(
    data: Any, cmin: float | None = None, cmax: float | None = None, high: int = 255, low: int = 0
) -> np.ndarray:
    """`data` as bytes: those from `cmin` to `cmax` (by default its smallest and largest) mapped to `low` ... `high`.

    Bytes stay as they are.
    """
    data = np.asarray(data)
    if data.dtype == np.uint8:
        return data
    if not 0 <= low <= high <= 255:
        raise ValueError(f"expected 0 <= low <= high <= 255, got low {low} and high {high}")
    smallest = data.min() if cmin is None else cmin
    largest = data.max() if cmax is None else cmax
    if largest < smallest:
        raise ValueError(f"cmax must not be below cmin, got {largest} and {smallest}")
    scale = float(high - low) / (float(largest - smallest) or 1.0)
    return (((data - smallest) * scale + low).clip(low, high) + 0.5).astype(np.uint8)


def toimage(
    arr: Any,
    high: int = 255,
    low: int = 0,
    cmin: float | None = None,
    cmax: float | None = None,
    pal: Any = None,
    mode: str | None = None,
    channel_axis: int | None = None,
) -> Image.Image:
    """A picture of an array [height, width] or of one with 3 or 4 channels along `channel_axis`.

    By default that is the first axis with so many. Values are scaled as `bytescale` does; mode 'F' takes numbers as
    they are. Raises ValueError for other shapes.
    """
    from PIL import Image

    data = np.asarray(arr)
    if data.ndim == 2:
        if mode == "F":
            return Image.fromarray(data.astype(np.float32))
        image = Image.fromarray(bytescale(data, cmin, cmax, high, low))
        if pal is not None:
            image.putpalette(np.asarray(pal, np.uint8).tobytes())
        return image if mode in (None, "L", "P") else image.convert(mode)
    if data.ndim != 3 or not {3, 4} & set(data.shape):
        raise ValueError(
            f"expected an array [height, width] or one with 3 or 4 channels, got shape {list(data.shape)}"
        )
    if channel_axis is None:
        channels = 3 if 3 in data.shape else 4
        channel_axis = min(axis for axis, size in enumerate(data.shape) if size == channels)
    scaled = np.moveaxis(bytescale(data, cmin, cmax, high, low), channel_axis, -1)
    if scaled.shape[-1] not in (3, 4):
        raise ValueError(f"expected 3 or 4 channels along axis {channel_axis}, got shape {list(data.shape)}")
    image = Image.fromarray(np.ascontiguousarray(scaled))
    return image if mode is None else image.convert(mode)


def fromimage(im: Image.Image, flatten: bool = False, mode: str | None = None) -> np.ndarray:
    """The array of a picture; `flatten` makes it floating-point grey."""
    if mode is not None and mode != im.mode:
        im = im.convert(mode)
    elif im.mode == "P":
        im = im.convert("RGBA" if "transparency" in im.info else "RGB")
    if flatten:
        im = im.convert("F")
    elif im.mode == "1":
        im = im.convert("L")
    return np.array(im)


def imread(name: Any, flatten: bool = False, mode: str | None = None) -> np.ndarray:
    """The picture in a file as an array."""
    from PIL import Image

    with Image.open(name) as image:
        return fromimage(image, flatten=flatten, mode=mode)


def imsave(name: Any, arr: Any, format: str | None = None) -> None:
    """Write an array as a picture; what is not bytes is scaled to the full range, as `bytescale` does."""
    toimage(arr, channel_axis=2).save(name, format)


def imresize(arr: Any, size: Any, interp: str = "bilinear", mode: str | None = None) -> np.ndarray:
    """A picture in another size: per cent (int), a factor (float), or (height, width)."""
    image = toimage(arr, mode=mode)
    if isinstance(size, (int, np.integer)):
        size = float(size) / 100
    if isinstance(size, (float, np.floating)):
        width, height = (int(side * size) for side in image.size)
    else:
        height, width = size
    return fromimage(image.resize((int(width), int(height)), _resampling(interp)))


def imrotate(arr: Any, angle: float, interp: str = "bilinear") -> np.ndarray:
    """A picture turned counterclockwise by `angle` degrees, in its own size."""
    return fromimage(toimage(arr).rotate(angle, _resampling(interp)))


def _resampling(name: str) -> Any:
    if name not in _RESAMPLING:
        raise ValueError(f"interp must be one of {', '.join(_RESAMPLING)}, got {name!r}")
    from PIL import Image

    return Image.Resampling(_RESAMPLING[name])


def getsize(font: Any, text: str, *args: Any, **kwargs: Any) -> tuple[int, int]:
    """Width and height of a text."""
    _, _, right, bottom = font.getbbox(text, *args, **kwargs)
    return int(right), int(bottom)


def textsize(draw: Any, text: str, font: Any = None, *args: Any, **kwargs: Any) -> tuple[int, int]:
    """Width and height of a text."""
    _, _, right, bottom = draw.textbbox((0, 0), text, font, *args, **kwargs)
    return int(right), int(bottom)
