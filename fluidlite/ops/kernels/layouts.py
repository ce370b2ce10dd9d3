"""The blocked layout of images, [N, C / block, H, W, block] in memory (nChw16c), and the calls for it.

Convolutions take each of their images in its own layout. All images of other calls have the same layout.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from ..op_view import Call
from .fusion import Repeated, steps_of
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


_FLOAT = 4
"""Bytes of an element."""

InBlocks = Callable[[KernelDef, Call, int], Call]


@dataclass(frozen=True)
class EachLayout:
    """A convolution: each image may have its own layout."""

    independent: ClassVar[bool] = True

    of_input: Mapping[str, bool]
    """The operands that are images: True for the input of the forward convolution and its gradient."""

    blocked: str
    """The kernel for images in blocks."""

    act: bool = False
    """The kernel has no groups, and an activation, which in blocks is none or relu."""

    def images(self, kernel: KernelDef, call: Call) -> Images | None:
        """The images; None for an activation that the kernel for blocks does not have."""
        if call.type != "f32" or (self.act and any(act > 1 for act in call.ints[_GROUPS:])):
            return None
        channels, height, width, filters = fixed(call.ints[1:5])
        size = None if height is None or width is None else height * width
        sizes = [(channels, size, None) if read else (filters, None, None) for read in self.of_input.values()]
        return Images(tuple(kernel.places[name] for name in self.of_input), sizes, True, self.act)

    def in_blocks(self, kernel: KernelDef, call: Call, block: int, blocked: Collection[int]) -> Call:
        """The call of the kernel for blocks, which gets the layout of each image."""
        ints = list(call.ints)
        read = {of_input: kernel.places[name] in blocked for name, of_input in self.of_input.items()}
        sizes = [*ints[:_GROUPS], 1] if self.act else ints[: _GROUPS + 1]
        act = ints[_GROUPS:] if self.act else []
        sizes += [block, int(read[True]), int(read[False]), *act]
        return Call(f"{self.blocked}.f32", call.operands, sizes, call.floats)


_GROUPS = 15
"""The place of the number of groups among the integers of a convolution of two dimensions."""


@dataclass(frozen=True)
class SameLayout:
    """A call whose images all have the same layout."""

    independent: ClassVar[bool] = False

    names: str
    """The operands that are images."""

    rewrite: InBlocks
    """Makes the call for images in blocks."""

    last_act: int | None = None
    """The last activation, by number, that the kernel for blocks has; None: there is none at all."""

    pooled: str | None = None
    """Results of pooling and their gradients. Where they have one place, all their layouts are the same."""

    def images(self, kernel: KernelDef, call: Call) -> Images | None:
        """The images; None for an activation that the kernel for blocks does not have."""
        if call.type != "f32" or (
            self.last_act is not None and any(act > self.last_act for act in call.ints[3:4])
        ):
            return None
        names = self.names.split()
        if self.pooled is not None and all(isinstance(n, int) and n == 1 for n in call.ints[10:12]):
            names = [name for name in names if name not in self.pooled.split()]
        places = tuple(kernel.places[name] for name in names if kernel.operand(call, name) is not None)
        channels, size = fixed(call.ints[1:3])
        return Images(places, [(channels, None if self.pooled is not None else size, None)] * len(places))

    def in_blocks(self, kernel: KernelDef, call: Call, block: int, blocked: Collection[int]) -> Call:
        """The call by `rewrite`; all images have the blocked layout."""
        return self.rewrite(kernel, call, block)


@dataclass(frozen=True)
class Joined:
    """A call that concatenates or splits arrays: images by channels, if rows are images."""

    independent: ClassVar[bool] = False

    whole: int
    """The place of the operand that is the whole."""

    def images(self, kernel: KernelDef, call: Call) -> Images | None:
        """The images; None if sizes of rows follow from the feeds."""
        bytes_of_rows = fixed(call.ints[1:])
        if None in bytes_of_rows:
            return None
        counts = [n // _FLOAT for n in bytes_of_rows if n is not None]
        counts.insert(self.whole % len(call.operands), sum(counts))
        places = tuple(k for k, name in enumerate(call.operands) if name is not None)
        return Images(places, [(None, None, counts[k]) for k in places], whole=True)

    def in_blocks(self, kernel: KernelDef, call: Call, block: int, blocked: Collection[int]) -> Call:
        """The same call: parts are whole blocks of channels."""
        return call


def norm_in_blocks(name: str, act: bool = True) -> InBlocks:
    """Batch normalisation by kernel `name`, with an activation if `act`."""

    def rewrite(kernel: KernelDef, call: Call, block: int) -> Call:
        last = [*call.ints[3:], 0][:1] if act else []
        return Call(f"{name}.f32", call.operands, [*call.ints[:3], *last, block], call.floats)

    return rewrite


def bias_in_blocks(kernel: KernelDef, call: Call, block: int) -> Call:
    """The addition of a number to each channel, as that of an array with two axes of four."""
    return _broadcast_in_blocks("elementwise_add_dims", call, block)


def bias_grad_in_blocks(kernel: KernelDef, call: Call, block: int) -> Call:
    """The gradients of that; of the bias alone by a kernel of its own."""
    if kernel.operand(call, "DX") is None:
        operands = [kernel.operand(call, "DOut"), kernel.operand(call, "DY")]
        return Call("bias_blocks_grad.f32", operands, [*call.ints, block])
    return _broadcast_in_blocks("elementwise_add_dims_grad", call, block)


def _broadcast_in_blocks(name: str, call: Call, block: int) -> Call:
    images, channels, size = call.ints[:3]
    return Call(f"{name}.f32", call.operands, [4, images, channels // block, size, block, 0, 1, 0, 1])


def pool_in_blocks(name: str) -> InBlocks:
    """Pooling of images as that of volumes with vectors of `block` elements, by kernel `name`."""

    def rewrite(kernel: KernelDef, call: Call, block: int) -> Call:
        images, channels, height, width, *window, out_height, out_width, exclusive = call.ints
        (size, strides, pads) = (window[k : k + 2] for k in range(0, 6, 2))
        flat = [images * (channels // block), 1, height, width, block]
        sizes = [*flat, 1, *size, 1, *strides, 0, *pads, 1, out_height, out_width, exclusive]
        return Call(f"{name}.{call.type}", call.operands, sizes)

    return rewrite
