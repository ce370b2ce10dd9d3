"""The blocked layout of images, [N, C / block, H, W, block] in memory (nChw16c), and the calls for it.

Convolutions take each of their images in its own layout. All images of other calls have the same layout.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from ..op_view import Call
from .chains import Repeated, steps_of
from .kernel_def import KERNELS, KernelDef


@dataclass(frozen=True)
class Images:
    """The operands of a call that are images."""

    places: tuple[int, ...]
    """Their places among the operands."""

    sizes: Sequence[tuple[int | None, int | None, int | None]]
    """The channels, places of one channel, and elements of each image, as far as the call says them."""

    independent: bool = False
    """Each may have its own layout; otherwise all have the same."""

    whole: bool = False
    """They may be in blocks only if all of them can."""

    def fit(self, shapes: Sequence[Sequence[int] | None]) -> bool:
        """Whether these can be the shapes of the images, [N, C, H, W]; None: of an image that cannot lie in blocks."""
        for shape, known in zip(shapes, self.sizes, strict=True):
            if shape is not None:
                channels, size = shape[1], shape[2] * shape[3]
                given = zip(known, (channels, size, channels * size), strict=True)
                if any(said is not None and said != found for said, found in given):
                    return False
        return True


class ImageRule(Protocol):
    """The interface of `KernelDef.images`.

    `independent`: whether each image may have its own layout.
    """

    independent: ClassVar[bool]

    def images(self, kernel: KernelDef, call: Call) -> Images | None:
        """The images of a call that can work on them in blocks; None if it cannot."""
        ...

    def in_blocks(self, kernel: KernelDef, call: Call, block: int, blocked: Collection[int]) -> Call:
        """The call that does what `call` does where the images at the places `blocked` lie in blocks."""
        ...


def images_of(call: Call) -> Images | None:
    """The images of a call that can work on them in blocks of channels; None if it cannot."""
    kernel = KERNELS[call.kernel]
    if kernel is not None and kernel.images is not None:
        return kernel.images.images(kernel, call)
    steps = steps_of(call) if call.type == "f32" else None
    if steps is None or any(isinstance(one, Repeated) for step in steps.steps for one in step.operands):
        return None
    places = tuple(k for k, name in enumerate(call.operands) if name is not None)
    return Images(places, [(None, None, None)] * len(places))


def in_blocks(call: Call, block: int, blocked: Collection[int]) -> Call:
    """The call that does what `call` does where its images at the places `blocked` lie in blocks.

    Of a call whose images lie alike these are all of them.
    """
    kernel = KERNELS[call.kernel]
    if kernel is None or kernel.images is None:
        return call  # elementwise: where elements lie does not matter
    return kernel.images.in_blocks(kernel, call, block, blocked)


def fixed(ints: Sequence[int]) -> list[int | None]:
    """The integers, with None for those that follow from sizes and may differ in other steps."""
    return [n if isinstance(n, int) else None for n in ints]


def reordered(source: str, target: str, shape: tuple[int, ...], block: int, back: bool) -> Call:
    """The call that brings images of `shape`, [N, C, H, W], into blocks, or `back`."""
    images, channels, height, width = shape
    inner = [height * width, block] if back else [block, height * width]
    sizes = [images, channels // block, *inner]
    return Call("transpose", [source, target], [4, 4, *sizes, 0, 1, 3, 2])
