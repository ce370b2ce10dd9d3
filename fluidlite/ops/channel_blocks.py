"""Which native calls can work on images in blocks of channels, and by which calls they do.

In memory these are [N, C / block, H, W, block]. Convolutions take each of their images as it lies. Other calls have all
of theirs lie alike.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from .chains import Repeated, steps_of
from .registry import Call

_OF_CONVOLUTIONS: dict[str, Mapping[int, bool]] = {
    "": {0: True, 3: False},
    "_norm": {0: True, 3: False},
    "_grad_input": {2: True, 1: False},
    "_grad_filter": {0: True, 1: False},
}
"""By kernel, which operands are images, and whether they are those that the forward convolution reads."""

_CONV, _ACT = 16, 15
"""How many integers a convolution has, and where the activation is of one that takes images as they lie."""

_ALIKE: dict[str, tuple[int, ...]] = {
    "batch_norm": (0, 5),
    "batch_norm_infer": (0, 5),
    "batch_norm_grad": (0, 4, 5),
    "elementwise_add_mid": (0, 2),
    "elementwise_add_mid_grad": (3, 4),
    "pool2d_max": (0, 1),
    "pool2d_max_grad": (0, 1, 2, 3),
    "pool2d_avg": (0, 1),
    "pool2d_avg_grad": (0, 1),
}
"""Which operands of a call are images that have to lie alike, besides those of calls that work element by element."""

_LAST_ACT = {"elementwise_add_mid": 0, "batch_norm": 1, "batch_norm_infer": 1}
"""Up to which activation these can end in blocks, by number: none, or relu."""

_POOLED = {"pool2d_max": (1,), "pool2d_max_grad": (1, 2), "pool2d_avg": (1,), "pool2d_avg_grad": (0,)}
"""Which of these are results of pooling, or their gradients: with one place each lies in either way."""


_JOINED = {"concat": -1, "split": 0}
"""Calls that put arrays side by side, or part them, and which operand is the whole."""

_FLOAT = 4
"""Bytes of an element."""


@dataclass(frozen=True)
class Images:
    """Which operands of a call are images.

    `sizes`: of each the channels, the places of one and the elements of an image, as far as the call knows them.
    `apart`: whether each may lie in its own way; `whole`: whether they may lie in blocks only if all of them can.
    """

    places: tuple[int, ...]
    sizes: Sequence[tuple[int | None, int | None, int | None]]
    apart: bool = False
    whole: bool = False

    def fit(self, shapes: Sequence[Sequence[int] | None]) -> bool:
        """Whether these can be the shapes of the images, [N, C, H, W]; None: of an image that cannot lie in blocks."""
        for shape, known in zip(shapes, self.sizes, strict=True):
            if shape is not None:
                channels, size = shape[1], shape[2] * shape[3]
                given = zip(known, (channels, size, channels * size), strict=True)
                if any(said is not None and said != found for said, found in given):
                    return False
        return True


def images_of(call: Call) -> Images | None:
    """The images of a call that can work on them in blocks of channels; None if it cannot."""
    stem, _, suffix = call.kernel.partition(".")
    if stem in _JOINED:
        return _joined(call, _JOINED[stem])
    if suffix != "f32":
        return None
    part = _part(call)
    if part is not None:
        channels, height, width, filters = _fixed(call.ints[1:5])
        size = None if height is None or width is None else height * width
        sizes = tuple(
            (channels, size, None) if of_input else (filters, None, None)
            for of_input in _OF_CONVOLUTIONS[part].values()
        )
        return Images(tuple(_OF_CONVOLUTIONS[part]), sizes, True, "_plain" in stem)
    places = _ALIKE.get(stem)
    if places is not None:
        if call.ints[3:] and stem in _LAST_ACT and call.ints[3] > _LAST_ACT[stem]:
            return None
        if stem in _POOLED and all(isinstance(n, int) and n == 1 for n in call.ints[10:12]):
            places = tuple(k for k in places if k not in _POOLED[stem])
        places = tuple(k for k in places if call.operands[k] is not None)
        channels, size = _fixed(call.ints[1:3])
        return Images(places, [(channels, None if stem in _POOLED else size, None)] * len(places))
    steps = steps_of(call)
    if steps is None or any(isinstance(one, Repeated) for step in steps.steps for one in step.operands):
        return None
    places = tuple(k for k, name in enumerate(call.operands) if name is not None)
    return Images(places, [(None, None, None)] * len(places))


def _joined(call: Call, whole: int) -> Images | None:
    """Those of a call that puts images side by side, or parts them: by channels, if rows are images."""
    bytes_of_rows = _fixed(call.ints[1:])
    if None in bytes_of_rows:
        return None
    counts = [n // _FLOAT for n in bytes_of_rows if n is not None]
    counts.insert(whole % len(call.operands), sum(counts))
    places = tuple(k for k, name in enumerate(call.operands) if name is not None)
    return Images(places, [(None, None, counts[k]) for k in places], whole=True)


def _fixed(ints: Sequence[int]) -> list[int | None]:
    """Those that are the same in each step."""
    return [n if isinstance(n, int) else None for n in ints]


def _part(call: Call) -> str | None:
    """Which kernel of the convolutions of two dimensions a call is, "" forward; None if none, or none for blocks."""
    stem = call.kernel.partition(".")[0]
    if not stem.startswith("conv2d"):
        return None
    part = stem.removeprefix("conv2d").removeprefix("_plain")
    if part not in _OF_CONVOLUTIONS or ("_plain" in stem and any(act > 1 for act in call.ints[_ACT:])):
        return None
    return part


def in_blocks(call: Call, block: int, blocked: Collection[int]) -> Call:
    """The call that does what `call` does where its images at the places `blocked` lie in blocks.

    Of a call whose images lie alike these are all of them.
    """
    stem, ints = call.kernel.partition(".")[0], list(call.ints)
    part = _part(call)
    if part is not None:
        plain = "_plain" in stem
        sizes = [*ints[:_ACT], 1] if plain else ints[:_CONV]
        act = ints[_ACT:] if plain else []
        read = {of_input: place in blocked for place, of_input in _OF_CONVOLUTIONS[part].items()}
        sizes += [block, int(read[True]), int(read[False]), *act]
        return Call(f"conv2d_blocks{part}.f32", call.operands, sizes, call.floats)
    if stem.startswith("batch_norm"):
        act = [] if stem == "batch_norm_grad" else [*ints[3:], 0][:1]
        name = stem.replace("batch_norm", "batch_norm_blocks")
        return Call(f"{name}.f32", call.operands, [*ints[:3], *act, block], call.floats)
    if stem.startswith("elementwise_add_mid"):
        images, channels, size = ints[:3]
        if stem.endswith("_grad") and call.operands[4] is None:
            return Call("bias_blocks_grad.f32", [call.operands[3], call.operands[5]], [*ints, block])
        name = stem.replace("_mid", "_dims")
        return Call(f"{name}.f32", call.operands, [4, images, channels // block, size, block, 0, 1, 0, 1])
    if stem.startswith("pool2d"):
        images, channels, height, width, *window, out_height, out_width, exclusive = ints
        (kernel, strides, pads) = (window[k : k + 2] for k in range(0, 6, 2))
        flat = [images * (channels // block), 1, height, width, block]
        sizes = [*flat, 1, *kernel, 1, *strides, 0, *pads, 1, out_height, out_width, exclusive]
        return Call(call.kernel.replace("pool2d", "pool3d"), call.operands, sizes)
    return call


def reordered(source: str, target: str, shape: tuple[int, ...], block: int, back: bool) -> Call:
    """The call that brings images of `shape`, [N, C, H, W], into blocks, or `back`."""
    images, channels, height, width = shape
    inner = [height * width, block] if back else [block, height * width]
    sizes = [images, channels // block, *inner]
    return Call("transpose", [source, target], [4, 4, *sizes, 0, 1, 3, 2])
