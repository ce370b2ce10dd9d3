"""Autotuning of convolutions: the faster layout on this machine, measured once and cached in a file.

The file is `fluidlite/convolutions.json` in the user's cache folder (XDG_CACHE_HOME, or else `~/.cache`). An entry is
for a processor, an instruction set, a number of threads and the shape of one image, whatever the batch size. The
first entry written stays, so that processes that measure at the same time agree.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from ...base.storage.files import write_file

_IMAGES, _WORK, _ROUNDS = 8, 1 << 26, 3
"""Limits of images and of multiply-adds (but for one image) per measurement, and its repetitions."""

_GAIN = 1.1
"""The speed-up for which another layout is taken."""

_known: dict[str, bool] = {}


def is_plain(part: str, sizes: Sequence[int], usual: bool) -> bool:
    """Whether a convolution, or a gradient (`part`), with these integers is to be computed by loops of our own.

    Args:
        part: "", "_grad_input" or "_grad_filter".
        sizes: the integers of `conv2d` (docs/kernels.md), without groups.
        usual: what is taken if there is nothing to try, or no difference.
    """
    if min(sizes[:4]) < 1 or min(sizes[4:7]) < 1:
        return usual
    key = _key(part, sizes)
    if key not in _known:
        kept = _read()
        if key in kept:
            _known[key] = bool(kept[key])
        else:
            _known[key] = _remembered(key, _tried(part, sizes, usual))
    return _known[key]


def _key(part: str, sizes: Sequence[int]) -> str:
    from ..._ext import kernels, threads

    shape = ",".join(str(int(n)) for n in sizes[1:])
    return f"{_processor()}; {kernels.used()}; {threads.count()} threads; conv2d{part} {shape}"


@cache
def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _tried(part: str, sizes: Sequence[int], usual: bool) -> bool:
    from ..._ext.arity import count_windows
    from ..._ext.engine import Engine

    c, h, w, filters, kh, kw, stride_h, stride_w, top, bottom, left, right, down, across = sizes[1:15]
    out = [
        count_windows(h, top, bottom, kh, down, stride_h),
        count_windows(w, left, right, kw, across, stride_w),
    ]
    n = max(1, min(sizes[0], _IMAGES, _WORK // max(1, c * filters * kh * kw * out[0] * out[1])))
    images = [n, *sizes[1:]]
    x, weights, y = (
        np.full(shape, 0.5, "float32") for shape in ((n, c, h, w), (filters, c, kh, kw), (n, filters, *out))
    )
    orders: dict[str, list[np.ndarray | None]] = {
        "": [x, weights, None, y],
        "_grad_input": [weights, y, x],
        "_grad_filter": [x, y, weights],
    }
    operands = orders[part]
    ways = {}
    for plain in (False, True):
        way = Engine(len(operands))
        slots = [-1 if each is None else slot for slot, each in enumerate(operands)]
        way.add(f"conv2d{'_plain' if plain else ''}{part}.f32", slots, images[:15] if plain else images)
        for slot, each in enumerate(operands):
            if each is not None:
                way.bind(slot, each)
        way.run()  # warm-up: allocates and packs
        ways[plain] = way
    took = {plain: float("inf") for plain in ways}
    for _ in range(_ROUNDS):
        for plain, way in ways.items():
            begin = time.perf_counter()
            way.run()
            took[plain] = min(took[plain], time.perf_counter() - begin)
    return (not usual) if took[usual] > _GAIN * took[not usual] else usual


def _path() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "fluidlite" / "convolutions.json"


def _read() -> dict[str, bool]:
    """The entries of the cache file; none if it is missing or damaged."""
    try:
        found = json.loads(_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _remembered(key: str, plain: bool) -> bool:
    """Add a measurement to the cache file, unless it has one for `key`; returns the entry that counts.

    If the file cannot be written, the measurement holds for this process alone.
    """
    path = _path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path.with_suffix(".lock")):
            kept = _read()
            plain = bool(kept.setdefault(key, plain))
            write_file(path, json.dumps(kept, indent=0, sort_keys=True))
    except OSError:
        pass
    return plain


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Alone among processes that write, where the system has locks on files."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
