# An index out of range is an error of the call. Annotations stay without effect: integers may be a `SymInt`.
# cython: annotation_typing=False, boundscheck=True, wraparound=True
"""Checks of kernel calls: the numbers of operands, integers and floats, and the bytes that each operand needs.

`abi.h` defines the notation in a kernel's table.
"""

import re
from collections.abc import Callable, Sequence
from itertools import chain
from math import prod

Ints = Sequence[int]
Sizes = Callable[[Ints, int], list[int]]  # bytes of each operand from the integers and the element's size

MOST_RANK = 8  # FL_MAX_RANK in abi.h

_GROUP = re.compile(r"(r?)\((\w+)\)")
_MOST = {
    "z": (0, 2**63 - 1),
    "d": (1, 2**63 - 1),
    "m": (0, 2**31 - 1),
    "r": (0, MOST_RANK),
    "i": (-(2**63), 2**63 - 1),
}
_BYTES = {"f16": 2, "f32": 4, "f64": 8, "i32": 4, "i64": 8, "u8": 1, "b1": 1}
_ARITHMETIC = ("add", "sub", "mul", "div", "max", "min", "pow", "mod", "floordiv")
_OTHER_BYTES = {"L": 8, "I": 4, "B": 1}


def _shape_bytes(ints: Ints, part: Callable[[Ints, Ints], Ints] | None) -> int:
    """Bytes of an array of the shape in `ints` (itemsize, rank, shape, ...), or of `part(shape, rest)`."""
    rank = ints[1]
    return ints[0] * prod(part(ints[2 : 2 + rank], ints[2 + rank :]) if part else ints[2 : 2 + rank])


def _cut(shape: Ints, rest: Ints) -> Ints:
    return [max(0, end - start) for start, end in zip(rest[: len(shape)], rest[len(shape) :], strict=False)]


def _times(shape: Ints, rest: Ints) -> Ints:
    return [n * times for n, times in zip(shape, rest, strict=False)]


def _joined(ints: Ints) -> list[tuple[int, int]]:
    """Bytes of the rows of each of several inputs with sequences, and of their offsets."""
    return [(rows * ints[1], 8 * (ints[0] + 1)) for rows in ints[2:]]


def _batched(ints: Ints, size: int) -> list[int]:
    m, n, k, _, _, batch = ints[:6]
    return [
        size * ((batch - 1) * step + one) if batch else 0
        for one, step in zip((m * k, k * n, m * n), ints[6:9], strict=False)
    ]


def _heads(operands: str) -> Sizes:
    """Bytes of the operands of attention, whose heads are strided: `q` queries or their gradients, `k` keys,
    `v` values, `o` results, `b` biases, `m` masks of a byte."""

    def sizes(ints: Ints, size: int) -> list[int]:
        outer, heads, m, n, k, d, transposed = ints[:7]
        extents = {"q": (m, k), "k": (k, n) if transposed else (n, k), "v": (n, d), "o": (m, d), "b": (m, n)}
        found, at = [], 7
        for kind in operands:
            if kind == "m":
                found.append(outer * heads * m * n)
                continue
            place = at if kind != "b" else len(ints) - 4
            strides = [*ints[place : place + (3 if kind != "b" else 4)], 1][:4]
            at += 3 if kind != "b" else 0
            lengths = (outer, heads, *extents[kind])
            last = sum((length - 1) * stride for length, stride in zip(lengths, strides, strict=True))
            found.append(size * (last + 1) if all(lengths) else 0)
        return found

    return sizes


def count_windows(size: int, before: int, after: int, count: int, dilation: int, step: int) -> int:
    """The number of windows along one dimension, as by `count_windows` in windows.h; ValueError if none fits."""
    reach, room = (count - 1) * dilation + 1, size + before + after
    if reach > room:
        raise ValueError(f"a window over {reach} elements, which does not fit into {room}")
    return (room - reach) // step + 1


def _images(ints: Ints) -> dict[str, int]:
    """Bytes of the arrays of a convolution over (len(ints) - 4) / 6 dimensions."""
    dims = (len(ints) - 4) // 6
    n, c, sizes = ints[0], ints[1], ints[2 : 2 + dims]
    filters, kernel = ints[2 + dims], ints[3 + dims : 3 + 2 * dims]
    strides, pads, dilations = ints[3 + 2 * dims :][:dims], ints[3 + 3 * dims :], ints[-1 - dims : -1]
    out = [
        count_windows(size, before, after, k, dilation, stride)
        for size, k, stride, dilation, before, after in zip(
            sizes, kernel, strides, dilations, pads[: 2 * dims : 2], pads[1 : 2 * dims : 2], strict=True
        )
    ]
    return {
        "input": 4 * n * c * prod(sizes),
        "filter": 4 * filters * (c // ints[-1]) * prod(kernel),
        "bias": 4 * filters,
        "output": 4 * n * filters * prod(out),
    }


def _convolved(names: str, grouped: bool = True, blocks: bool = False) -> Sizes:
    """The sizes of the operands of a convolution."""

    def sizes(ints: Ints, size: int) -> list[int]:
        of = _images(ints[:16] if blocks else ints if grouped else [*ints[:15], 1])
        return [of[name] for name in names.split()]

    return sizes


def _resized(ints: Ints, size: int) -> list[int]:
    """Bytes of images before and after."""
    images, inner, axes = ints[3:6]
    return [size * images * inner * prod(ints[6 + k * axes : 6 + (k + 1) * axes]) for k in range(2)]


def _field(names: str) -> Sizes:
    """The sizes of the operands of kernels of conditional random fields."""

    def sizes(ints: Ints, size: int) -> list[int]:
        count, rows, tags, steps = ints
        rows = max(rows, count * steps)
        of = {
            "rows": rows * tags * size,
            "offsets": 8 * (count + 1),
            "lengths": 8 * count,
            "label": 8 * rows,
            "moves": (tags + 2) * tags * size,
            "costs": count * size,
        }
        return [of[name] for name in names.split()]

    return sizes


def _in_dims(places: str) -> Sizes:
    """Bytes of operands shaped as X ("x") or as Y ("y"), for a Y that lacks dimensions of X."""

    def sizes(ints: Ints, size: int) -> list[int]:
        rank, stands = ints[0], ints[1 + ints[0] :]
        if rank < 3 or any(a == b for a, b in zip(stands, stands[1:], strict=False)):
            raise ValueError(
                f"dimensions in Y {stands}, expected at least three, alternately present and missing"
            )
        of = {
            "x": size * prod(ints[1 : 1 + rank]),
            "y": size * prod([n for n, in_y in zip(ints[1:], stands, strict=False) if in_y]),
        }
        return [of[name] for name in places]

    return sizes


def _scattered(ints: Ints, size: int) -> list[int]:
    """Bytes of base, index, updates and result of updates at points."""
    points, width, item, _, *shape = ints
    return [
        size * width * prod(shape),
        points * len(shape) * item,
        size * points * width,
        size * width * prod(shape),
    ]


# Kernels whose sizes are no products of their integers.
_ODD_SIZES: dict[str, Sizes] = {
    "concat": lambda i, _: [*[i[0] * n for n in i[1:]], i[0] * sum(i[1:])],
    "split": lambda i, _: [i[0] * sum(i[1:]), *[i[0] * n for n in i[1:]]],
    "transpose": lambda i, _: [_shape_bytes(i, None)] * 2,
    "slice": lambda i, _: [_shape_bytes(i, None), _shape_bytes(i, _cut)],
    "slice_grad": lambda i, _: [_shape_bytes(i, _cut), _shape_bytes(i, None)],
    "slice_find": lambda i, size: [2 * size * (max(i[1 + i[0] :], default=0) // 2), 16 * i[0]],
    "slice_at": lambda i, _: [_shape_bytes(i, None), 16 * i[1], _shape_bytes(i, lambda _, rest: rest)],
    "slice_at_grad": lambda i, _: [_shape_bytes(i, lambda _, rest: rest), 16 * i[1], _shape_bytes(i, None)],
    "expand": lambda i, _: [_shape_bytes(i, None), _shape_bytes(i, _times)],
    "expand_grad": lambda i, size: [_shape_bytes([size, *i], _times), _shape_bytes([size, *i], None)],
    "resize": _resized,
    "resize_grad": lambda i, size: _resized(i, size)[::-1],
    "gemm_batched": _batched,
    "attention": _heads("qkvbmo"),
    "attention_grad": _heads("qkvbmoqkv"),
    "gemm_pack": lambda i, size: [size * i[0] * i[1], size * i[0] * (i[1] + 32)],
    "gemm_packed": lambda i, size: [size * n for n in (i[0] * i[2], i[2] * (i[1] + 32), i[0] * i[1], i[1])],
    "sequence_concat": lambda i, _: [*chain(*_joined(i)), i[1] * sum(i[2:]), 8 * (i[0] + 1)],
    "sequence_concat_grad": lambda i, _: [i[1] * sum(i[2:]), *chain(*(pair[::-1] for pair in _joined(i)))],
    **{
        f"{kind}{part}": _convolved(operands, blocks=kind == "conv2d_blocks")
        for kind in ("conv2d", "conv2d_last", "conv2d_blocks", "conv3d", "conv3d_last")
        for part, operands in (
            ("", "input filter bias output"),
            ("_grad_input", "filter output input"),
            ("_grad_filter", "input output filter"),
        )
    },
    "conv2d_norm": _convolved("input filter bias output bias bias bias bias"),
    "conv2d_blocks_norm": _convolved("input filter bias output bias bias bias bias", blocks=True),
    "conv2d_plain": _convolved("input filter bias output", grouped=False),
    "conv2d_plain_norm": _convolved("input filter bias output bias bias bias bias", grouped=False),
    "conv2d_plain_grad_input": _convolved("filter output input", grouped=False),
    "conv2d_plain_grad_filter": _convolved("input output filter", grouped=False),
    "linear_chain_crf": _field("rows offsets lengths moves label rows rows moves costs"),
    "linear_chain_crf_grad": _field("rows offsets lengths moves label costs rows moves"),
    "crf_decoding": _field("rows offsets lengths moves label label"),
    "scatter_nd": _scattered,
    "gather_nd": lambda i, size: [i[1] * prod(i[2:]), i[0] * (len(i) - 2) * size, i[0] * i[1]],
    **{f"elementwise_{name}_dims": _in_dims("xyx") for name in _ARITHMETIC},
    **{f"elementwise_{name}_dims_grad": _in_dims("xyxxxy") for name in _ARITHMETIC},
}


class Arity:
    """The signature of a kernel; `text` is its `takes` in the table of kernels."""

    def __init__(self, name: str, text: str) -> None:
        self.text = text
        operands, ints, floats, sizes = text.split("|")
        pattern = operands.replace("n", "[xn]")
        for old, new in ((")", ")+"), ("[[xn]]", "[xn]?"), ("[x]", "x?")):
            pattern = pattern.replace(old, new)
        self.operands = re.compile(pattern)
        group = _GROUP.search(operands)
        self.group = len(group[2]) if group else 0
        self.others = len(operands) - len(group[0]) if group else 0
        repeated = _GROUP.search(ints)
        self.before = (
            ints[: repeated.start()] + repeated[1] if repeated else ints.replace("[", "").replace("]", "")
        )
        self.least = len(self.before) - ("[" in ints)
        self.repeated = repeated[2] if repeated else ""
        self.by_rank = bool(repeated and repeated[1])
        self.floats = (len(floats.strip("[]")) - ("[" in floats), len(floats.strip("[]")))
        stem, *types = name.split(".")
        self.odd = _ODD_SIZES[stem] if sizes == "?" else None
        self.item = _BYTES[types[0]] if types else 1
        items = [_BYTES[kind] for kind in types]
        head, _, tail = sizes.partition("(")
        middle, _, tail = tail.partition(")")
        self.sizes = [
            [self.size_rule(one) for one in part.split(",") if one] for part in (head, middle, tail)
        ]
        if len(types) == 2:  # a cast
            self.sizes[0] = [(self.sizes[0][0][0], item, 0) for item in items]

    def size_rule(self, text: str) -> tuple[list[int], int, int]:
        """The indices of the integers whose product is the number of elements (-1: that of the group), the bytes of an
        element, and the number of additional elements."""
        item = _OTHER_BYTES.get(text[len(text) - 1 :], self.item)
        places = [-1 if one == "@" else ord(one) - ord("a") for one in text if one.islower() or one == "@"]
        return places, item, int("+" in text)

    def needed(self, n_operands: int, ints: Ints) -> list[int]:
        """The bytes that each operand needs."""
        if self.odd is not None:
            return self.odd(ints, self.item)
        head, middle, tail = self.sizes
        found = [item * (prod([ints[k] for k in places]) + more) for places, item, more in head]
        times = (n_operands - self.others) // self.group if self.group else 0
        for k in range(times):
            own = ints[len(self.before) + k] if self.repeated else 0
            found += [
                item * (prod([own if j < 0 else ints[j] for j in places]) + more)
                for places, item, more in middle
            ]
        return found + [item * (prod([ints[k] for k in places]) + more) for places, item, more in tail]

    def problem(
        self, operands: Sequence[bool], ints: Ints, floats: Sequence[float], sizes: Ints | None
    ) -> str | None:
        """The error of a call, or None; `operands`: for each whether it is given."""
        if self.operands.fullmatch("".join(["x" if there else "n" for there in operands])) is None:
            return f"{len(operands)} operands, of which it lacks {[k for k, there in enumerate(operands) if not there]}"
        kinds = self.before
        if self.repeated:
            times = (
                (len(operands) - self.others) // self.group if self.group else max(len(ints) - len(kinds), 0)
            )
            if self.by_rank and len(ints) >= len(kinds):
                times = ints[len(kinds) - 1]
                if not 0 <= times <= MOST_RANK:
                    return f"a rank of {times}, which must be in [0, {MOST_RANK}]"
            kinds += self.repeated * times
            if len(ints) != len(kinds):
                return f"{len(ints)} integers, which must be {len(kinds)}"
        elif not self.least <= len(ints) <= len(kinds):
            return f"{len(ints)} integers, which must be {self.least} to {len(kinds)}"
        for place, (kind, number) in enumerate(zip(kinds, ints, strict=False)):
            least, most = _MOST[kind]
            if not least <= number <= most:
                return f"the integer {number} at position {place}, which must be in [{least}, {most}]"
        if not self.floats[0] <= len(floats) <= self.floats[1]:
            return f"{len(floats)} real numbers, which must be {self.floats[0]} to {self.floats[1]}"
        if sizes is not None:
            try:
                needed = self.needed(len(operands), ints)
            except ValueError as error:
                return str(error)
            for place, (there, has, wants) in enumerate(zip(operands, sizes, needed, strict=False)):
                if there and has < wants:
                    return f"{has} bytes as operand {place}, of which it needs {wants}"
        return None


class ChainArity(Arity):
    """The signature of chains; `chain.cc` describes their integers.

    Args:
        name: of the kernel.
        check_step: verifies the call of a kernel, given its number, as `kernels.check` does.
    """

    most_operands, most_temporaries, most_steps, most_step_operands, most_step_ints = 24, 16, 64, 10, 4

    def __init__(self, name: str, check_step: Callable[..., None]) -> None:
        self.item = _BYTES[name.rpartition(".")[2]]
        self.check_step = check_step

    def problem(
        self, operands: Sequence[bool], ints: Ints, floats: Sequence[float], sizes: Ints | None
    ) -> str | None:
        """The error of a call, or None."""
        try:
            return self._problem(operands, list(ints), list(floats), sizes)
        except (IndexError, KeyError, ValueError) as error:
            return f"steps that are none: {error}"

    def _problem(
        self, operands: Sequence[bool], ints: list[int], floats: list[float], sizes: Ints | None
    ) -> str | None:
        n, count, temporaries, steps = ints[:4]
        if count != len(operands) or not all(operands) or count > self.most_operands:
            return f"{len(operands)} operands, of {count} and at most {self.most_operands}"
        layouts, at = ints[4 : 4 + 2 * count], 4 + 2 * count
        repeated = sum(1 for k in layouts[::2] if isinstance(k, int) and k == 0)
        if (
            not 0 < steps <= self.most_steps
            or temporaries < 0
            or temporaries + count - repeated > self.most_temporaries
        ):
            return (
                f"{steps} steps, {temporaries} temporaries and {count - repeated} operands that are repeated"
            )
        if not 0 <= n <= 2**63 - 1:
            return f"the integer {n} at position 0"
        for k, (times, stretch) in enumerate(zip(layouts[::2], layouts[1::2], strict=False)):
            whole = isinstance(times, int) and times == 0
            if not whole and (times < 1 or stretch < 1):
                return f"operand {k} for {times} times {stretch}"
            if sizes is not None and sizes[k] < self.item * (n if whole else times):
                return f"{sizes[k]} bytes as operand {k}, of which it needs {self.item * (n if whole else times)}"
        for _ in range(steps):
            kernel, many = ints[at], ints[at + 1]
            used = ints[at + 2 : at + 2 + many]
            at += 2 + many
            reals, more = ints[at], ints[at + 1]
            own, at = ints[at + 2 : at + 2 + more], at + 2 + more
            if (
                len(used) != many
                or many > self.most_step_operands
                or len(own) != more
                or more >= self.most_step_ints
                or kernel < 0
            ):
                return f"a step of kernel {kernel}, {many} operands and {more} integers"
            if not 0 <= reals <= len(floats):
                return f"a step of {reals} real numbers, of which {len(floats)} are left"
            if not all(-2 - temporaries < which < count for which in used):
                return f"a step with the operands {used}, of {count} and {temporaries} temporaries"
            there = [which != -1 for which in used]
            self.check_step(
                kernel, there, [n, *own], floats[:reals], [self.item * n if one else 0 for one in there]
            )
            floats = floats[reals:]
        return (
            f"{len(ints)} integers and {len(floats)} more real numbers than steps take"
            if floats or at != len(ints)
            else None
        )
