"""Attention fusion: one call, and another one for all gradients, without a matrix of queries x keys in memory.

    transpose(q) -> q1   transpose(k) -> k1   transpose(v) -> v1
    matmul(q1, k1) -> s  elementwise_add(s, mask) -> t               dropout -> kept
    softmax(t) -> p      dropout(p) -> w, kept                       attention(q, k, v, mask, kept) -> out
    matmul(w, v1) -> o   transpose(o) -> out

The gradients recompute s, p and w, if there are many keys. Transposes and factors whose results have no other use are
fused too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...base.sizes import always_equal, current
from ...base.sizes.shapes import aligned, product
from ...ops.registry import Call
from ..ir.instructions import Instruction, Uses
from .patterns import NoMatch, Pattern, equal, no_shift, number, require

_SPLIT, _SPLIT_ACROSS, _JOINED_ACROSS = [0, 2, 1, 3], [0, 2, 3, 1], [0, 3, 1, 2]
"""Permutations that split heads from rows, [N, L, H, D] -> [N, H, L, D], or join them; to and from [N, H, D, L]."""

_LEAST_KEYS = 128
"""With fewer keys, keeping the probabilities for the gradients is faster than recomputing them."""

_PRODUCTS = "gemm", "gemm_batched"
_ADDITIONS = "elementwise_add", "elementwise_add_mid", "elementwise_add_dims"


def join_attention(instructions: list[Instruction], uses: Uses) -> list[Instruction]:
    """The pass."""
    places = {id(each): at for at, each in enumerate(instructions)}
    replaced: dict[int, list[Instruction]] = {}
    for each in instructions:
        if isinstance(each.action, Call) and each.action.name == "softmax":
            try:
                replaced.update(_Attention(uses, each).replacements(instructions, places))
            except NoMatch:
                continue
    return [made for at, each in enumerate(instructions) for made in replaced.get(at, (each,))]


@dataclass
class _Heads:
    """A variable with a matrix for each head; strides of batch, head and row."""

    name: str
    rows: Any
    columns: Any
    strides: list[Any]


class _Attention(Pattern):
    """The attention around a softmax; raises `NoMatch` if there is none.

    `forward`, `backward`: the instructions to replace by one each.
    """

    def __init__(self, uses: Uses, softmax: Instruction) -> None:
        super().__init__(uses, softmax.action.type)
        self.forward = [softmax]
        self.backward: list[Instruction] = []
        self._dropout: Call | None = None
        self._gradients: dict[str, _Heads] = {}  # of "q", "k" and "v"
        self._find_scores(softmax.action)
        self._find_result(softmax.action)
        self._find_gradients(softmax.action)
        made = {self._root(name) for each in self._matched for name in each.writes}
        for name in made.difference(map(self._root, self._kept)):
            require(self._is_private(name))
        self._take_factor()
        self._take_transposes()

    @property
    def _matched(self) -> list[Instruction]:
        return [*self.forward, *self.backward]

    @property
    def _kept(self) -> list[str]:
        """The results that the fused calls still compute."""
        mask = [] if self._dropout is None else [self._dropout.operands[2] or ""]
        return [self._out.name, *mask, *(each.name for each in self._gradients.values())]

    def _is_product(
        self, a: str | None, b: str | None, sizes: Sequence[Any], trans: tuple[bool, bool]
    ) -> Callable[[Call], bool]:
        """A predicate: is a call just the product of these operands, of sizes (m, n, k), for each head?"""
        m, n, k = sizes
        batch = self._lead[0] * self._lead[1]

        def fits(call: Call) -> bool:
            one = call.name == "gemm"
            rest = [0] if one else [batch, m * k, k * n, m * n]
            return (
                (a is None or self._root(a) == self._root(call.operands[0]))
                and (b is None or self._root(b) == self._root(call.operands[1]))
                and equal(call.ints, [m, n, k, *map(int, trans), *rest])
                and (not one or always_equal(batch, 1))
                and call.floats[1] == 0
                and not any(call.operands[3:])
            )

        return fits

    def _heads(self, name: str | None, rows: Any, columns: Any) -> _Heads:
        """A variable with contiguous matrices."""
        return _Heads(name or "", rows, columns, [self._lead[1] * rows * columns, rows * columns, columns])

    def _find_scores(self, softmax: Call) -> None:
        """Match the product with the keys, an optional factor, and an optional bias."""
        scores = softmax.operands[0]
        added = self._producer(scores, *_ADDITIONS)
        if added is not None:
            scores = self._taken(self.forward, added).operands[0]
        scaled = self._producer(scores, "scale")
        self._scale: float | None = None
        if scaled is not None:
            call = self._taken(self.forward, scaled)
            require(no_shift(call))
            self._scale, scores = number(call.floats[0]), call.operands[0]
        made = self._producer(scores, *_PRODUCTS)
        call = self._taken(self.forward, made)
        view = None if made is None else made.view
        if view is None or view.type != "matmul":
            raise NoMatch
        x, y = view.shape("X"), view.shape("Y")
        self._across = not view.attr("transpose_Y")  # keys are transposed in memory
        require(not view.attr("transpose_X") and 2 <= len(x) <= 4 and equal(x[:-2], y[:-2]))
        self._lead = (*x[:-2], *(1,) * (4 - len(x)))
        self._m, self._k = x[-2], x[-1]
        self._n = y[-1] if self._across else y[-2]
        require(self._is_product(None, None, (self._m, self._n, self._k), (False, not self._across))(call))
        require(always_equal(softmax.ints[1], self._n))
        self._by = number(call.floats[0])
        self._alpha = self._by * (1.0 if self._scale is None else self._scale)
        self._bias: str | None = None
        self._bias_strides: list[Any] = [0] * 4
        if added is not None:
            self._find_bias(added, (*x[:-1], self._n))
        self._q = self._heads(call.operands[0], self._m, self._k)
        self._keys = self._heads(
            call.operands[1], *((self._k, self._n) if self._across else (self._n, self._k))
        )

    def _find_bias(self, added: Instruction, whole: Sequence[Any]) -> None:
        if added.view is None:
            raise NoMatch
        x, y, self._bias = added.view.shape("X"), added.view.shape("Y"), added.view.name("Y")
        require(equal(x, whole) and len(y) <= len(x))
        y = aligned(x, y, added.view.attr("axis"))[1]
        require(
            len(y) == len(x)
        )  # and each of its dimensions is 1 or as in X, as kernels of additions want it
        strides = [0 if always_equal(n, 1) else product(tuple(y[at + 1 :])) for at, n in enumerate(y)]
        self._bias_strides = [*strides[:-2], *[0] * (4 - len(x)), *strides[-2:]]

    def _find_result(self, softmax: Call) -> None:
        """Match an optional dropout or factor, and the product with the values."""
        self._probabilities = self._weights = softmax.operands[1]
        self._factor = 1.0
        dropout = self._consumer(self._weights, "dropout")
        scaled = self._consumer(self._weights, "scale", fits=no_shift)
        if dropout is not None:
            self._dropout = call = self._taken(self.forward, dropout)
            left = 1 - number(call.floats[0])
            self._factor = 1.0 if not call.ints[1] else 1 / left if left > 0 else 0.0
            self._weights = call.operands[1]
        elif scaled is not None:
            call = self._taken(self.forward, scaled)
            self._factor, self._weights = number(call.floats[0]), call.operands[1]

        def by_values(call: Call) -> bool:
            return self._root(call.operands[0]) == self._root(self._weights) and call.ints[3] == 0

        made = self._consumer(self._weights, *_PRODUCTS, fits=by_values)
        call = self._taken(self.forward, made)
        self._d = call.ints[1]
        require(self._is_product(None, None, (self._m, self._d, self._n), (False, False))(call))
        self._after = number(call.floats[0])
        self._values = self._heads(call.operands[1], self._n, self._d)
        self._out = self._heads(call.operands[2], self._m, self._d)

    def _find_gradients(self, softmax: Call) -> None:
        """Match the instructions of the gradients, if there are any."""
        m, n, k, d = self._m, self._n, self._k, self._d
        back = self._consumer(self._probabilities, "softmax_grad")
        if back is None:
            return
        require(current(n) >= _LEAST_KEYS)
        call = self._taken(self.backward, back)
        require(self._after == 1 and self._root(call.operands[0]) == self._root(self._probabilities))
        weights, scores = call.operands[1:]
        if self._dropout is not None:
            dropped = self._taken(self.backward, self._producer(weights, "dropout_grad"))
            require(self._root(dropped.operands[1]) == self._root(self._dropout.operands[2]))
            weights = dropped.operands[0]
        else:
            require(self._factor == 1)
        made = self._taken(self.backward, self._producer(weights, *_PRODUCTS))
        require(
            self._is_product(None, self._values.name, (m, n, d), (False, True))(made) and made.floats[0] == 1
        )
        self._back = self._heads(made.operands[0], m, d)
        self._find_gradient("v", self._weights, self._back.name, (n, d, m), (True, False), 1.0)
        added = self._consumer(scores, *(kind + "_grad" for kind in _ADDITIONS))
        if self._bias is not None and added is not None:  # or else that of the sum is that of the scores
            call = self._taken(self.backward, added)
            require(call.operands[5] is None)
            scores = call.operands[4]
        if self._scale is not None:
            call = self._taken(self.backward, self._consumer(scores, "scale", fits=no_shift))
            require(call.floats[0] == self._scale)
            scores = call.operands[1]
        q, keys = self._q.name, self._keys.name
        self._find_gradient("q", scores, keys, (m, k, n), (False, self._across), self._by)
        first, second, sizes = (q, scores, (k, n, m)) if self._across else (scores, q, (n, k, m))
        self._find_gradient("k", first, second, sizes, (True, False), self._by)

    def _find_gradient(
        self,
        of: str,
        a: str | None,
        b: str | None,
        sizes: Sequence[Any],
        trans: tuple[bool, bool],
        alpha: float,
    ) -> None:
        each = self._consumer(a, *_PRODUCTS, fits=self._is_product(a, b, sizes, trans))
        if each is not None:
            call = self._taken(self.backward, each)
            require(call.floats[0] == alpha)
            self._gradients[of] = self._heads(call.operands[2], *sizes[:2])

    def _take_factor(self) -> None:
        """Fuse the multiplication of the queries by a factor, and that of their gradient, if not used elsewhere."""
        scale = self._producer(self._q.name, "scale")
        if scale is None or not no_shift(scale.action) or not self._is_private(self._q.name, scale):
            return
        factor = number(scale.action.floats[0])
        made = self._gradients.get("q")
        if made is not None:
            back = self._consumer(made.name, "scale", fits=lambda call: list(call.floats) == [factor, 0])
            if back is None or not self._is_private(made.name, back):
                return
            made.name = self._taken(self.backward, back).operands[1] or ""
        self._q.name = self._taken(self.forward, scale).operands[0] or ""
        self._alpha *= factor

    def _take_transposes(self) -> None:
        """Fuse transposes of inputs and results, if the transposed tensors have no other use."""
        self._take(self.forward, self._q, self._transpose(self._q, _SPLIT, True))
        self._take(self.forward, self._values, self._transpose(self._values, _SPLIT, True))
        self._take(self.forward, self._out, self._transpose(self._out, _SPLIT, False))
        if self.backward:
            self._take(self.backward, self._back, self._transpose(self._back, _SPLIT, True))
        for of in self._gradients.keys() & {"q", "v"}:
            self._take(
                self.backward, self._gradients[of], self._transpose(self._gradients[of], _SPLIT, False)
            )
        made = self._gradients.get("k")
        split, join = (_SPLIT_ACROSS, _JOINED_ACROSS) if self._across else (_SPLIT, _SPLIT)
        keys = self._transpose(self._keys, split, True)
        gradient = None if made is None else self._transpose(made, join, False)
        if self._across and made is not None and (keys is None or gradient is None):
            return  # keys and their gradient need one layout
        self._take(self.forward, self._keys, keys)
        if made is not None:
            self._take(self.backward, made, gradient)
        self._across = self._across and keys is None

    def _take(self, into: list[Instruction], side: _Heads, found: tuple[Instruction, str] | None) -> None:
        if found is None:
            return
        into.append(found[0])
        rows, columns = (side.columns, side.rows) if self._is_across(side) else (side.rows, side.columns)
        heads = self._lead[1]
        side.name, side.strides = found[1], [rows * heads * columns, columns, heads * columns]

    def _is_across(self, side: _Heads) -> bool:
        return self._across and side in (self._keys, self._gradients.get("k"))

    def _transpose(self, side: _Heads, perm: list[int], before: bool) -> tuple[Instruction, str] | None:
        """The transpose that produces (`before`) or consumes a variable, and the variable on its other end."""
        each = self._producer(side.name, "transpose") if before else self._consumer(side.name, "transpose")
        if each is None or not self._is_private(side.name, each):
            return None
        shape, order = each.action.ints[2:6], list(each.action.ints[6:])
        if each.action.ints[1] != 4 or order != perm:
            return None
        heads = [shape[at] for at in perm] if before else shape
        fits = equal(heads, [*self._lead, side.rows, side.columns])
        return (each, each.action.operands[0 if before else 1]) if fits else None

    def replacements(
        self, instructions: Sequence[Instruction], places: dict[int, int]
    ) -> dict[int, list[Instruction]]:
        """The instructions that replace the matched ones, by position.

        The forward call is at the position of the last matched instruction, that of the gradients at the first one.
        """
        forward, backward = (
            sorted(places[id(each)] for each in part) for part in (self.forward, self.backward)
        )
        found: dict[int, list[Instruction]] = {at: [] for at in (*forward, *backward)}
        bias, mask = self._bias, None if self._dropout is None else self._dropout.operands[2]
        sides = [self._q, self._keys, self._values]
        self._check_order(instructions, forward, forward[-1])
        if self._dropout is not None:
            at = next(at for at in forward if instructions[at].action is self._dropout)
            n, _, seed = self._dropout.ints
            draw = Call("dropout_mask", [mask], [n, seed], self._dropout.floats)
            found[at].append(Instruction(instructions[at].ops, (), (mask or "",), draw))
        call = self._call("attention", [*sides, self._out], [bias, mask], [self._out.name])
        found[forward[-1]].append(_joined(instructions, forward, call, 1))
        if backward:
            self._check_order(instructions, backward, backward[0])
            made = [self._gradients.get(of) for of in "qkv"]
            like = [
                side if gradient is None else gradient for side, gradient in zip(sides, made, strict=True)
            ]
            outs = [None if gradient is None else gradient.name for gradient in made]
            call = self._call(
                "attention_grad", [*sides, self._back, *like], [bias, mask], [self._back.name, *outs]
            )
            found[backward[0]].append(_joined(instructions, backward, call, 3))
        return found

    def _call(self, kernel: str, sides: list[_Heads], more: list[str | None], last: list[str | None]) -> Call:
        sizes = [*self._lead, self._m, self._n, self._k, self._d, int(self._across)]
        strides = [n for side in sides for n in side.strides]
        operands = [*(side.name for side in sides[:3]), *more, *last]
        floats = [self._alpha, self._factor * self._after]
        return Call(f"{kernel}.{self._type}", operands, [*sizes, *strides, *self._bias_strides], floats)

    def _check_order(self, instructions: Sequence[Instruction], places: list[int], to: int) -> None:
        """Require that there are no jumps in between, and that no instruction moves past a write of its inputs."""
        first, last, own = places[0], places[-1], set(places)
        between = range(first, last + 1)
        require(not any(instructions[at].is_jump for at in between))
        writes = {at: set(map(self._root, instructions[at].writes)) for at in between}
        inside = set().union(*(writes[at] for at in places))
        for at in places:
            read = set(map(self._root, instructions[at].reads)) - inside
            passed = range(at + 1, to + 1) if to >= at else range(to, at)
            require(not any(writes[other] & read for other in passed if other not in own))


def _joined(instructions: Sequence[Instruction], places: list[int], call: Call, made: int) -> Instruction:
    """The instruction of a call for the operators at `places`; the last `made` operands are its results."""
    ops = tuple({id(op): op for at in places for op in instructions[at].ops}.values())
    reads, writes = call.operands[:-made], call.operands[-made:]
    return Instruction(
        ops,
        tuple(dict.fromkeys(name for name in reads if name)),
        tuple(name for name in writes if name),
        call,
    )
