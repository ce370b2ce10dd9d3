"""`Inliner`: inlines branches and loops together with their gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...framework import Operator
from ...ops.registry import EMPTY, VERSION, grad_name
from ..ir.errors import Unsupported
from ..ir.inference import in_place_of, is_non_tensor
from ..ir.jumps import COPY_IN
from .array_ops import STASH_POP
from .branching import TRIP_COUNT, incoming_gradients, is_local_name, mangled_names
from .gradient_pairs import backward_of, forward_of, gradients
from .inlining import BlockInliner, incremented, loop_residuals


class Inliner(BlockInliner):
    """Inlines gradients as well; see `BlockInliner` for the arguments.

    The gradient of a branch is a branch by the same predicate. That of a loop is a loop with the same trip count, whose
    iterations pop what those of the forward loop have stashed.
    """

    def _loop_gradient(self, op: Operator, names: Mapping[str, str]) -> Iterator[Operator]:
        """A loop with the trip count of the forward loop, from its last iteration to the first."""
        forward, block = forward_of(op), op.attrs["sub_block"]
        assert forward is not None
        source = forward.attrs["sub_block"]
        kept = loop_residuals(forward, names, self._arrays)
        assert kept is not None
        ran = kept[0]
        if not names and ran not in self._defined:
            raise Unsupported("the loop is not in the plan that its gradient is in", op)
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
                    self._array_aliases[names.get(out, out)] = inner[inside]
                else:
                    inner[inside] = self._array(op, out, names)
                continue
            if inside not in states:
                if value in self.unset:
                    raise Unsupported(f"variable {value!r} is undefined if a loop has no iteration", op)
                part = inner.setdefault(inside, f"{inside}{VERSION}B{block.idx}")
                total = totals[part] = f"{inside}{VERSION}A{block.idx}"
                yield in_place_of(op, "fill_zeros_like", {"X": [value]}, {"Out": [total]}, {})
                self._set([total])
            ends.append((inner[inside] if inside in states else total, names.get(out, out)))
        left, more, none = (f"{ran}{VERSION}{mark}{block.idx}" for mark in "LMN")
        compared = {"X": [left], "Y": [none]}
        yield self._copy_in(op, ran, left)
        yield self._integer(op, none, 0)
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
        body += [incremented(op, left, -1), in_place_of(op, "greater_than", compared, {"Out": [more]}, {})]
        yield from self._jump(op, more, body, is_local, True)
        for found, out in ends:
            yield self._copy_in(op, found, out)

    def _gradient(self, op: Operator, names: Mapping[str, str]) -> Iterator[Operator]:
        forward, block = forward_of(op), op.attrs["sub_block"]
        assert forward is not None
        (scope,) = op.inputs["Scope"]
        scope = names.get(scope, scope)
        if not names and scope + TRIP_COUNT not in self._defined:
            raise Unsupported("the branch is not in the plan that its gradient is in", op)
        taken = forward.attrs["sub_block"]
        inner = {**names, **mangled_names(taken), **mangled_names(block)}
        sources, states = incoming_gradients(op), {}
        pairs = []
        for name, out in gradients(op):
            if is_non_tensor(op, name):
                inner[grad_name(name)] = self._array(op, out, names)
            else:
                pairs.append((name, names.get(name, name), names.get(out, out)))
        for name, _, _ in pairs:
            source, inside = sources.get(name, EMPTY), grad_name(name)
            inner[inside] = f"{inside}{VERSION}S{block.idx}"  # not an outer variable of this name
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
                body.append(in_place_of(op, COPY_IN, {"X": [inner[inside]]}, {"Out": [out]}, {}))
        yield from self._jump(op, scope + TRIP_COUNT, body, is_local_name(block, taken))
        for source, out in ends:
            yield self._copy_in(op, source, out)

    def _arriving(self, op: Operator, source: str, state: str) -> Operator:
        """Copy a gradient that comes from outside to a variable that the block updates."""
        if source in self.unset or source not in self._defined:
            raise Unsupported(f"gradient {source!r} may be undefined", op)
        return self._copy_in(op, source, state)

    def _backward(
        self, op: Operator, forward: Operator, names: Mapping[str, str], *how: Any
    ) -> list[Operator]:
        """The operators of a gradient's block; see `_body`. Results of the forward block are defined in it."""
        spared = {
            name: self.unset.pop(name) for name in [*self.unset] if self.unset[name].attrs is forward.attrs
        }
        body = self._body(op, names, *how)
        self.unset.update(spared)
        return body
