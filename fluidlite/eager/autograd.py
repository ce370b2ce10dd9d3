"""Reverse-mode differentiation over the tape: `backward`, `grad`, `no_grad`, hooks."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from .._ext import eager as core
from ..backend.cupy_ import library
from ..base import context
from ..base.errors import NotSupportedError
from ..base.selected_rows import SelectedRows, total
from ..framework import Variable, mode, tracing
from ..ops.registry import OperatorError
from . import placing

if TYPE_CHECKING:
    from .tensor import Tensor

_recording: context.Slot[bool] = context.Slot("recording", True)


def is_recording() -> bool:
    """Whether operators on tensors with gradients are recorded."""
    return _recording.get()


def set_recording(on: bool) -> None:
    """Switch recording on or off until it is switched again (or the enclosing `no_grad` ends)."""
    _recording.set(on)


@contextmanager
def recording(on: bool) -> Iterator[None]:
    """Context manager that switches recording on or off."""
    with _recording.hold(on):
        yield


class no_grad:  # noqa: N801 - Fluid's name
    """Nothing inside is recorded: `with no_grad():`, `@no_grad`, `@no_grad()` (`fluid.dygraph.no_grad`).

    A decorated generator function records nothing while it runs; code that consumes it is not affected.
    """

    def __new__(cls, func: Callable[..., Any] | None = None) -> Any:
        instance = super().__new__(cls)
        return instance if func is None else instance(func)

    def __init__(self, func: Callable[..., Any] | None = None) -> None:
        self._held: list[Any] = []

    def __enter__(self) -> None:
        held = _recording.hold(False)
        held.__enter__()
        self._held.append(held)

    def __exit__(self, *exc_info: Any) -> None:
        self._held.pop().__exit__(*exc_info)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generate(*args: Any, **kwargs: Any) -> Iterator[Any]:
                with _recording.hold(False):
                    generator = function(*args, **kwargs)
                answer, failure = None, None
                while True:
                    try:
                        with _recording.hold(False):
                            item = generator.send(answer) if failure is None else generator.throw(failure)
                    except StopIteration as end:
                        return end.value
                    answer, failure = None, None
                    try:
                        answer = yield item
                    except GeneratorExit:
                        generator.close()
                        raise
                    except BaseException as error:
                        failure = error

            return generate

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with _recording.hold(False):
                return function(*args, **kwargs)

        return call


def add_up(have: Any, more: Any) -> Any:
    """The sum of two gradients, at least one of which is sparse or on a GPU; of two sparse ones, each row once."""
    both = [have, more]
    placing.colocate(None, both)
    with placing.computing(both[0]) as xp:
        made = total(both[0], both[1], xp)
        return made.merged(xp) if isinstance(made, SelectedRows) else made


def backward(
    tensors: Sequence[Tensor], gradients: Sequence[Tensor | None] | None, retain_graph: bool
) -> None:
    """Add the gradients of `tensors` to all leaves they were computed from; see `Tensor.backward`.

    In Fluid's dygraph mode they replace those of earlier passes, as they do in 1.8; outside of it, where names of
    Paddle 2.0 are used, they add up. `gradients`: the initial gradients, None for ones. Raises OperatorError if shapes
    do not fit, and if an earlier pass has released a part of the graph that is needed.
    """
    engine = core.Sweep(retain_graph)
    starts = gradients if gradients is not None else [None] * len(tensors)
    for tensor, start in zip(tensors, starts, strict=True):
        if tensor.stop_gradient or (tensor.node is not None and tensor.node.released):
            continue
        engine.give(tensor if tensor.node is None else tensor.node, tensor.index, _start(tensor, start).array)
    engine.sweep()
    if engine.broken:
        raise OperatorError(
            "an earlier backward pass has released part of the graph that this one needs: pass retain_graph=True "
            "to the earlier one, or detach() the tensors computed before it"
        )
    replace = mode.in_dygraph_mode()
    moving = library.array_type is not None  # without CuPy everything is on the host
    for leaf, gradient in engine.arrived():
        if moving:
            gradient = placing.to_device_of(gradient, leaf.array)
        if leaf.stop_gradient:  # set after it was used: as in Fluid, the gradient is zeros
            gradient = leaf.zeros_alike()
        for hook in list(leaf.hooks or ()):
            gradient = hook(gradient)
        if replace:
            leaf.grad_array = gradient
        else:
            leaf.accumulate(gradient)


def _start(tensor: Tensor, start: Tensor | None) -> Tensor:
    if start is None:
        return tensor._new(placing.ones_like(tensor.array), "ones@GRAD")
    if start.array.shape != tensor.array.shape:
        raise OperatorError(
            f"the gradient to start from must have the shape of tensor {tensor.name!r}, {tensor.shape}, "
            f"got {start.shape}"
        )
    return start


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool = False,
    no_grad_vars: Any = None,
    backward_strategy: Any = None,
) -> list[Tensor | None]:
    """The gradients of the sum of `outputs` with respect to `inputs`, which are left as they are.

    `grad_outputs` weigh the outputs (None: ones). `create_graph` records the computation of the gradients, for second
    derivatives; `retain_graph` (by default as `create_graph`) keeps the tape. `no_grad_vars`: tensors treated as
    constants. Raises OperatorError (an EnforceNotMet and a ValueError) for an input that the outputs do not depend on,
    unless `allow_unused`, when its gradient is None, and AssertionError for arguments that are no tensors, as Fluid
    does. Follows `fluid.dygraph.grad`.
    """
    tracer = tracing.current()
    targets = _tensors(inputs, "inputs", tracer)
    sources = _tensors(outputs, "outputs", tracer)
    if not only_inputs:
        raise AssertionError("only_inputs=False is not supported by grad, and not by Fluid either")
    if grad_outputs is None or (isinstance(grad_outputs, (list, tuple)) and not grad_outputs):
        starts: list[Any] = [None] * len(sources)
    else:
        starts = list(grad_outputs) if isinstance(grad_outputs, (list, tuple)) else [grad_outputs]
        _tensors([start for start in starts if start is not None], "grad_outputs", tracer)
    if len(starts) != len(sources):
        raise AssertionError(
            f"grad_outputs must hold one gradient for each of {len(sources)} outputs, got {len(starts)}"
        )
    blocked = [] if no_grad_vars is None else _tensors(no_grad_vars, "no_grad_vars", tracer)
    results: list[Any]
    if tracer is not None:
        results = tracer.gradients(sources, targets, starts, blocked, create_graph)
    else:
        retain = create_graph if retain_graph is None else retain_graph
        with tracing.record.hold(None):
            walk = _Walk(sources, targets, blocked)
            results = walk.recorded(starts, retain) if create_graph else walk.plain(starts, retain)
        for gradient in results:
            if create_graph and gradient is not None:
                gradient.stop_gradient = False
        record = tracing.record.get()
        if record is not None:
            record.differentiated((sources, targets, starts, blocked), results, create_graph)
    for target, gradient in zip(targets, results, strict=True):
        if gradient is None and not allow_unused:
            raise OperatorError(
                f"the outputs do not depend on tensor {target.name!r} (or its stop_gradient is True): leave it out of "
                "inputs, or pass allow_unused=True to get None"
            )
    return results


def _tensors(value: Any, what: str, tracer: tracing.Tracer | None) -> list[Tensor]:
    """`given` as a list of tensors, Variables while a program is traced. Raises AssertionError for anything else."""
    items = list(value) if isinstance(value, (list, tuple, set)) else [value]
    for item in items:
        if not isinstance(item, core.Value if tracer is None else Variable):
            raise AssertionError(f"{what} of grad must be eager tensors, got {type(item).__name__}")
    if not items and what in ("inputs", "outputs"):
        raise AssertionError(f"{what} of grad must not be empty")
    return items


_Place = tuple[Any, int]


def _place(tensor: Tensor) -> _Place:
    """The position of a tensor on the tape: (its node, index of the output), or (itself, 0) for a leaf."""
    return (tensor, 0) if tensor.node is None else (tensor.node, tensor.index)


class _Walk:
    """A call of `grad`: the part of the tape between sources and targets."""

    def __init__(self, sources: list[Tensor], targets: list[Tensor], blocked: list[Tensor]) -> None:
        self.sources, self.targets = sources, targets
        self.blocked = {(id(p), i) for p, i in map(_place, blocked)}
        self.wanted = {(id(p), i) for p, i in map(_place, targets)}
        self.needed, self.ends = self._between()

    def _between(self) -> tuple[set[Any], set[Any]]:
        """The nodes on paths from targets to sources, and those among them from which no further target is reached."""
        leads: dict[int, bool] = {}
        nodes: dict[int, Any] = {}
        wanted_nodes = {key for key, _ in self.wanted}
        for source in self.sources:
            if source.node is None:
                continue
            stack = [(source.node, False)]
            while stack:
                node, done = stack.pop()
                key = id(node)
                if done:
                    leads[key] = any(
                        id(edge) in wanted_nodes or leads.get(id(edge), False) for edge in node.edges or ()
                    )
                elif key not in nodes:
                    nodes[key] = node
                    stack.append((node, True))
                    stack += [(edge, False) for edge in node.edges or () if isinstance(edge, core.Node)]
        needed = {nodes[key] for key, yes in leads.items() if yes or key in wanted_nodes}
        return needed, {node for node in needed if not leads[id(node)]}

    def plain(self, starts: list[Tensor | None], retain: bool) -> list[Tensor | None]:
        engine = core.Sweep(retain, self.needed, self.blocked, self.ends)
        for source, start in zip(self.sources, starts, strict=True):
            if not source.stop_gradient:
                place, index = _place(source)
                engine.give(place, index, _start(source, start).array)
        engine.sweep()
        results: list[Tensor | None] = []
        leaves = {id(leaf): gradient for leaf, gradient in engine.arrived()}
        for target in self.targets:
            place, index = _place(target)
            if place is target:
                value = leaves.get(id(target))
            else:
                value = place.out_grads[index] if place in engine.nodes() else None
            results.append(None if value is None else target._new(value))
        for node in engine.nodes():
            node.out_grads = None
        return results

    def recorded(self, starts: list[Tensor | None], retain: bool) -> list[Tensor | None]:
        """As `plain`, with the gradient operators recorded for second derivatives."""
        got: dict[tuple[int, int], Tensor] = {}
        alive: list[Any] = []
        queue: list[tuple[int, Any]] = []
        queued: set[int] = set()

        def give(place: Any, index: int, gradient: Tensor) -> None:
            key = (id(place), index)
            if key in self.blocked:
                return
            if isinstance(place, core.Node):
                if place not in self.needed:
                    return
                if id(place) not in queued:
                    queued.add(id(place))
                    heappush(queue, (-place.number, place))
            alive.append(place)
            got[key] = got[key] + gradient if key in got else gradient  # type: ignore[assignment]

        with recording(True):
            for source, start in zip(self.sources, starts, strict=True):
                if not source.stop_gradient:
                    give(*_place(source), _start(source, start))
            while queue:
                node = heappop(queue)[1]
                if node.edges is not None and node not in self.ends:
                    self._differentiate(node, got, give)
                    if not retain:
                        node.release()
        return [got.get((id(place), index)) for place, index in map(_place, self.targets)]

    def _differentiate(
        self, node: Any, got: dict[tuple[int, int], Tensor], give: Callable[..., None]
    ) -> None:
        if node.function is not None:
            raise NotSupportedError(
                "a traced function (declarative, to_static) has no second derivatives: call grad(create_graph=True) on "
                "the function's own operators, with ProgramTranslator().enable(False)"
            )
        saved_places, steps = node.recipe
        if isinstance(steps, Exception):
            raise steps
        new = self.sources[0]._new
        saved = [
            _saved_tensor(node, place, array, new)
            for place, array in zip(saved_places, node.saved, strict=True)
        ]
        arriving: list[Any] = [got.get((id(node), k)) for k in range(node.n_out)]
        intermediate: list[Any] = []
        for form, places, targets in steps:
            if not core.arrives(places, len(saved), arriving):
                intermediate += [None for target in targets if target == -2]
                continue
            arguments = []
            for place in places:
                if place < len(saved):
                    arguments.append(saved[place])
                elif place < len(saved) + node.n_out:
                    index = place - len(saved)
                    if arriving[index] is None:
                        arriving[index] = new(node.zeros(index))
                    arguments.append(arriving[index])
                else:
                    arguments.append(intermediate[place - len(saved) - node.n_out])
            for result, target in zip(form.invoke(arguments), targets, strict=True):
                if target == -2:
                    intermediate.append(result)
                elif target >= 0 and node.edges[target] is not None and result.array is not None:
                    give(node.edges[target], node.indices[target], result)


def _saved_tensor(node: Any, place: int, array: Any, new: Callable[..., Tensor]) -> Tensor:
    """The tensor, with its position on the tape, of an array that a node has saved."""
    count = len(node.edges)
    if place < count:
        edge = node.edges[place]
        if edge is None:
            return new(array)
        if not isinstance(edge, core.Node):
            leaf: Tensor = edge
            return leaf
        source, index = edge, node.indices[place]
    else:
        # Outputs that get no gradients, such as the softmax in a loss, still depend on the inputs.
        source, index = node, place - count
        if array.dtype.kind != "f":
            return new(array)
    tensor = new(array, stop_gradient=False)
    tensor.node, tensor.index = source, index
    return tensor


class HookHandle:
    """The handle of a registered hook: `remove()` unregisters it."""

    def __init__(self, hooks: list[Any], hook: Any) -> None:
        self._hooks, self._hook = hooks, hook

    def remove(self) -> bool:
        """Unregister the hook; returns False if it was removed before."""
        try:
            self._hooks.remove(self._hook)
        except ValueError:
            return False
        return True


def register_hook(tensor: Tensor, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
    """See `Tensor.register_hook`."""
    if tensor.stop_gradient:
        raise RuntimeError(
            f"tensor {tensor.name!r} has stop_gradient=True: no gradient will reach a hook on it"
        )

    def call(gradient: Any) -> Any:
        replaced = hook(tensor._new(gradient))
        return gradient if replaced is None else replaced.array

    if tensor.node is None:
        if tensor.hooks is None:
            tensor.hooks = []
        hooks = tensor.hooks
    else:
        if tensor.node.hooks is None:
            tensor.node.hooks = {}
        hooks = tensor.node.hooks.setdefault(tensor.index, [])
    hooks.append(call)
    return HookHandle(hooks, call)
