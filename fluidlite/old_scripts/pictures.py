"""The functions for pictures that `scipy.misc` had, on Pillow (which they needed as well)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from PIL import Image

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
