"""Rules for `KernelDef.images`: the layouts of images that calls of a kernel can take."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..op_view import Call
from .kernel_def import KernelDef
from .layouts import Images, fixed

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
