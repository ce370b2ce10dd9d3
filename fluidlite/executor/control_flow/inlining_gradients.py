"""`Inliner`: operators with the blocks of branches and loops, and of their gradients, in their places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...framework import Operator
from ...ops.registry import EMPTY, VERSION, grad_name
from ..ir.errors import Unsupported
from ..ir.inference import in_place_of, is_non_tensor
from ..ir.jumps import HOLD
from .array_ops import STASH_POP
from .branching import RAN, arriving, is_local_name, mangled_names
from .gradient_pairs import backward_of, forward_of, gradients
from .inlining import BlockInliner, counted, kept_by


class Inliner(BlockInliner):
    """The gradients of branches and loops as well; see `BlockInliner` for what it is given.

    Each is a branch, or a loop, in its turn: by whether the one before has run, and for as many turns as that has kept.
    """

    def _loop_gradient(self, op: Operator, names: Mapping[str, str]) -> Iterator[Operator]:
        """A loop of as many turns as have been kept, the last one first."""
        forward, block = forward_of(op), op.attrs["sub_block"]
        assert forward is not None
        source = forward.attrs["sub_block"]
        kept = kept_by(forward, names, self._arrays)
        assert kept is not None
        ran = kept[0]
        if not names and ran not in self._known:
            raise Unsupported("the loop has run elsewhere, and its gradient is here", op)
        inner = {**names, **mangled_names(source), **mangled_names(block)}
        whole = [*kept[1], *self._scan_residuals(forward, inner)]
        states: dict[str, str] = {}
        for inside, outside in zip(
            op.attrs["original_output_grad"], op.inputs.get("Out@GRAD", ()), strict=True
        ):
            if is_non_tensor(op, outside):
                inner[inside] = self._array(op, outside, names)
            else:
                inner[inside], states[inside] = f"{inside}{VERSION}S{block.idx}", outside
        for inside, outside in states.items():
            yield self._arriving(op, names.get(outside, outside), inner[inside])
        ends, totals = [], {}
        for name, out in gradients(op):
            inside, value = grad_name(name), names.get(name, name)
            if is_non_tensor(op, name):
                if inside in op.attrs["original_output_grad"]:
                    self._same[names.get(out, out)] = inner[inside]
                else:
                    inner[inside] = self._array(op, out, names)
                continue
            if inside not in states:
                if value in self.unset:
                    raise Unsupported(f"variable {value!r} has no value where a loop has no turn", op)
                part = inner.setdefault(inside, f"{inside}{VERSION}B{block.idx}")
                total = totals[part] = f"{inside}{VERSION}A{block.idx}"
                yield in_place_of(op, "fill_zeros_like", {"X": [value]}, {"Out": [total]}, {})
                self._set([total])
            ends.append((inner[inside] if inside in states else total, names.get(out, out)))
        left, more, none = (f"{ran}{VERSION}{mark}{block.idx}" for mark in "LMN")
        compared = {"X": [left], "Y": [none]}
        yield self._hold(op, ran, left)
        yield self._number(op, none, 0)
        yield in_place_of(op, "greater_than", compared, {"Out": [more]}, {})
        self._set([more])
        is_local = is_local_name(block, source)
        number = next(k for k, each in enumerate(backward_of(forward)) if each.attrs is op.attrs)
        first = [
            in_place_of(
                op, STASH_POP, {"Like": [name]}, {"Out": [name]}, {"array": self._stash(name, source, number)}
            )
            for name in whole
        ]
        body = [*first, *self._backward(op, forward, inner, is_local, whole)]
        made = {name for each in body for name in each.writes()}
        for part, total in totals.items():
            if part in made:
                body.append(in_place_of(op, "sum", {"X": [total, part]}, {"Out": [total]}, {}))
        body += [counted(op, left, -1), in_place_of(op, "greater_than", compared, {"Out": [more]}, {})]
        yield from self._jump(op, more, body, is_local, True)
        for found, out in ends:
            yield self._hold(op, found, out)

    def _gradient(self, op: Operator, names: Mapping[str, str]) -> Iterator[Operator]:
        forward, block = forward_of(op), op.attrs["sub_block"]
        assert forward is not None
        (scope,) = op.inputs["Scope"]
        scope = names.get(scope, scope)
        if not names and scope + RAN not in self._known:
            raise Unsupported("the branch has run elsewhere, and its gradient is here", op)
        taken = forward.attrs["sub_block"]
        inner = {**names, **mangled_names(taken), **mangled_names(block)}
        sources, states = arriving(op), {}
        pairs = []
        for name, out in gradients(op):
            if is_non_tensor(op, name):
                inner[grad_name(name)] = self._array(op, out, names)
            else:
                pairs.append((name, names.get(name, name), names.get(out, out)))
        for name, _, _ in pairs:
            source, inside = sources.get(name, EMPTY), grad_name(name)
            inner[inside] = f"{inside}{VERSION}S{block.idx}"  # not what may be known by this name outside
            if source != EMPTY:
                states[inside] = inner[inside]
                yield self._arriving(op, names.get(source, source), inner[inside])
        body = self._backward(op, forward, inner)
        made = {name for each in body for name in each.writes()}
        ends = []
        for name, value, out in pairs:
            inside = grad_name(name)
            if inside in states:
                ends.append((states[inside], out))
                continue
            yield in_place_of(op, "fill_zeros_like", {"X": [value]}, {"Out": [out]}, {})
            self._set([out])
            if inner[inside] in made:
                body.append(in_place_of(op, HOLD, {"X": [inner[inside]]}, {"Out": [out]}, {}))
        yield from self._jump(op, scope + RAN, body, is_local_name(block, taken))
        for source, out in ends:
            yield self._hold(op, source, out)

    def _arriving(self, op: Operator, source: str, state: str) -> Operator:
        """Have a gradient that comes from outside be in a place of its own."""
        if source in self.unset or source not in self._known:
            raise Unsupported(f"perhaps nothing computes {source!r}", op)
        return self._hold(op, source, state)

    def _backward(
        self, op: Operator, forward: Operator, names: Mapping[str, str], *how: Any
    ) -> list[Operator]:
        """The operators of a gradient's block; see `_body`. What the forward block sets is set there."""
        spared = {
            name: self.unset.pop(name) for name in [*self.unset] if self.unset[name].attrs is forward.attrs
        }
        body = self._body(op, names, *how)
        self.unset.update(spared)
        return body
