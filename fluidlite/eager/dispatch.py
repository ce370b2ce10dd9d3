"""Dispatch of operator calls: call signatures (`core.Form`), their specialisations (`core.Variant`) and gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._ext import eager as core
from ..base.dtypes import VarType, attribute, to_numpy, to_vartype
from ..base.errors import EnforceNotMet, NotSupportedError
from ..base.selected_rows import SelectedRows
from ..base.sizes import SymInt, current
from ..ops.kernel_types import gradient_kinds
from ..ops.native import native_error
from ..ops.registry import Call, LodArray, OpDef, OperatorError, OpSpec, OpView, check_result, find, grad_name
from . import dynamic_shapes, gpu
from .dynamic_shapes import EagerMeta
from .elements import as_numbers

if TYPE_CHECKING:
    from ..backend.cupy_.device import CudaDevice

Array = Any


_forms: dict[Any, core.Form] = {}
_FORMS_KEPT, _LONGEST_KEPT = 4096, 256


def form(
    op_type: str,
    slots: Sequence[tuple[str, int]],
    outputs: Sequence[tuple[str, int]],
    attrs: Mapping[str, Any] | None = None,
) -> core.Form:
    """A call signature of operator `op_type`: (slot, number of tensors) for inputs and outputs, and attributes.

    It is called with the tensors in that order. As in Fluid, unknown attributes are ignored. Raises NotSupportedError
    for an unknown operator.
    """
    definition = find(op_type)
    known_attrs = {
        name: attribute(value)
        for name, value in (attrs or {}).items()
        if value is not None and (name in definition.attrs or name in _EVERYWHERE)
    }
    signature = core.Form(
        _specialise,
        definition,
        {slot: [f"{slot}:{i}" for i in range(count)] for slot, count in slots},
        {slot: [f"{slot}:out{i}" for i in range(count)] for slot, count in outputs},
        known_attrs,
    )
    signature.counted = definition.effects.numbered
    return signature


_EVERYWHERE = frozenset(
    {"op_role", "op_role_var", "op_namescope", "op_callstack", "op_device", "use_cudnn", "use_mkldnn"}
)
"""Attributes that any operator may have, without effect here."""


def hashable_attrs(attrs: Mapping[str, Any]) -> Any:
    """Attributes as a key of dicts."""
    try:
        key = tuple(attrs.items())
        hash(key)
    except TypeError:
        key = tuple([(name, _hashable(value)) for name, value in attrs.items()])
    return key


def _hashable(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple([_hashable(item) for item in value])
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    return value


def cached_form(
    op_type: str,
    slots: tuple[tuple[str, int], ...],
    outputs: tuple[Any, ...],
    attrs: Mapping[str, Any] | None,
) -> core.Form:
    """`form`, cached; `outputs` hold names, or (name, count)."""
    key = (op_type, slots, outputs, hashable_attrs(attrs) if attrs else ())
    cached = _forms.get(key)
    if cached is None:
        if attrs and _tensors(attrs):
            return cached_form(
                op_type, slots, outputs, {name: as_numbers(value) for name, value in attrs.items()}
            )
        pairs = [(item, 1) if isinstance(item, str) else (item[0], item[1]) for item in outputs]
        cached = form(op_type, slots, pairs, attrs)
        if attrs and any(isinstance(value, list) and len(value) > _LONGEST_KEPT for value in attrs.values()):
            return cached  # the elements of an array, unlikely to recur
        if len(_forms) >= _FORMS_KEPT:
            _forms.clear()
        _forms[key] = cached
    return cached


def _tensors(attrs: Mapping[str, Any]) -> bool:
    """True if there are eager tensors among the attributes, in place of numbers."""
    return any(
        isinstance(item, core.Value)
        for value in attrs.values()
        for item in (value if isinstance(value, (list, tuple)) else (value,))
    )


def _specialise(
    form: core.Form, arrays: list[Array], device: CudaDevice | None, may_open: bool
) -> core.Variant:
    """The specialisation of a call signature for arrays: native kernels or the reference kernel.

    With `may_open`, one for dynamic shapes if several sizes have been seen. `device`: the GPU of the arrays, where
    native kernels are not used.
    """
    history = dynamic_shapes.history_of(form, arrays) if may_open else None
    if history is not None:
        variant = _dynamic(form, arrays, history)
        if variant is not None:
            return variant
    known: EagerMeta | None = form.known
    meta = (
        dynamic_shapes.solved(form, arrays, None) if known is not None and known.sizes else EagerMeta(known)
    )
    meta.shapes.update((name, tuple(array.shape)) for name, array in zip(form.names_in, arrays, strict=True))
    return _variant(form, arrays, meta, device)


def _dynamic(
    form: core.Form, arrays: list[Array], history: dynamic_shapes.ShapeHistory
) -> core.Variant | None:
    """A dynamic-shape specialisation, with the sizes of `arrays` at first; None if there can be none."""
    meta = dynamic_shapes.symbolic_meta(form, arrays, history.axes)
    if meta is None:
        return None
    history.left -= 1
    try:
        variant = _variant(form, arrays, meta, None)
    except Exception:  # the static specialisation raises it with the numbers in its message
        return None
    if not variant.cached or any(layout is None or -1 in layout[1] for layout in variant.layouts_out):
        history.left = 0  # results depend on values, whatever the sizes
    return variant if variant.is_open else None


def _variant(
    form: core.Form, arrays: list[Array], meta: EagerMeta, device: CudaDevice | None
) -> core.Variant:
    """The specialisation for arrays whose shapes are in `meta`, static or symbolic."""
    definition: OpDef = form.definition
    for name, array in zip(form.names_in, arrays, strict=True):
        meta.dtypes[name] = to_vartype(array.dtype)
        if not isinstance(array, SelectedRows):
            meta.values[name] = array
    view = OpView(definition, form.inputs, form.outputs, form.attrs, meta)
    _check_slots(view)
    if definition.infer is not None:
        definition.infer(view)
    names = form.names_out
    whole = all(isinstance(n, SymInt) or n >= 0 for name in names for n in meta.shapes.get(name, (-1,)))
    dense = not any(isinstance(array, SelectedRows) for array in arrays)
    calls = _native(view, form) if whole and dense and device is None else None
    stop_gradient = tuple(
        [
            slot in definition.no_grad
            or meta.dtypes.get(name, VarType.FP32) not in gradient_kinds(definition.type)
            for slot, made in form.outputs.items()
            for name in made
        ]
    )
    is_view = whole and dense and _is_view(definition, form, meta)
    cached = not meta.asked and all(name in meta.shapes for name in names)
    opened = None
    if meta.sizes is not None and whole and cached:
        dynamic_shapes.note_gradient(view)
        opened = dynamic_shapes.dynamic_arguments(
            form, arrays, meta, calls or (), is_view or calls is not None
        )
    meta.values = {}

    def layouts(number: Callable[[Any], int]) -> list[gpu.Layout | None]:
        return [
            (to_numpy(meta.dtypes[name]), tuple([number(n) for n in meta.shapes[name]]))
            if name in meta.shapes
            else None
            for name in names
        ]

    outputs = layouts(current)
    checked = outputs if opened is None else layouts(lambda n: -1 if isinstance(n, SymInt) else n)
    return core.Variant(
        form,
        arrays,
        outputs,
        calls
        and [
            (run, places, list(map(current, ints)), list(map(current, floats)))
            for run, places, ints, floats in calls
        ],
        is_view,
        _reference(form, checked) if device is None else _elsewhere(form, outputs, device, is_view),
        stop_gradient,
        _differentiate,
        meta,
        # With a seed every call draws the same numbers; without one the kernel continues its stream.
        definition.effects.random and bool(form.attrs.get("seed") or form.attrs.get("fix_seed")),
        cached,
        device,
        opened,
    )


def _elsewhere(
    form: core.Form, outputs: list[gpu.Layout | None], device: CudaDevice, is_view: bool
) -> gpu.Run:
    """A function that runs the operator on a GPU."""
    if is_view:
        return gpu.reshaped(device, outputs)
    definition: OpDef = form.definition
    if not form.names_in and (definition.effects.random or definition.dispatch.cuda is None):
        # For the same random numbers as on the host.
        return gpu.from_host(device, _specialise(form, [], None, False).compute)
    return _reference(form, outputs, device)


def _check_slots(view: OpView) -> None:
    definition = view.definition
    for slot in view.inputs:
        if slot not in definition.slots:
            raise OperatorError(f"operator {view.type} has no input {slot!r}; it has {definition.inputs}")
    for declared in definition.input_slots:
        if not declared.optional and not view.inputs.get(declared.name):
            raise view.fail(f"input {declared.name} is missing")


def _native(view: OpView, form: core.Form) -> list[tuple[int, list[int], list[int], list[float]]] | None:
    """The native calls for a view, with operands as indices; their numbers may be symbolic sizes."""
    from .._ext import kernels  # brings SciPy, which importing the package alone should not

    definition = view.definition
    if definition.native is None or gpu.UPDATES.intersection(view.inputs):
        return None
    calls = definition.native(view)
    listed = [calls] if isinstance(calls, Call) else calls
    if listed is None or not all(kernels.available(call.kernel) for call in listed):
        return None
    place = {name: k for k, name in enumerate((*form.names_in, *form.names_out))}
    if any(name is not None and name not in place for call in listed for name in call.operands):
        return None  # intermediate arrays between calls exist only in plans
    shapes, dtypes = view.meta.shapes, view.meta.dtypes  # type: ignore[attr-defined]
    sizes = {
        name: math.prod(shapes[name]) * to_numpy(dtypes[name]).itemsize for name in place if name in shapes
    }
    for call in listed:
        there = [name is not None for name in call.operands]
        bytes_of = [0 if name is None else sizes[name] for name in call.operands]
        try:
            kernels.check(call.kernel, there, call.ints, call.floats, bytes_of)
        except ValueError as error:
            raise view.fail(str(error)) from None
    return [
        (
            kernels.address(call.kernel),
            [-1 if name is None else place[name] for name in call.operands],
            list(call.ints),
            list(call.floats),
        )
        for call in listed
    ]


def _is_view(definition: OpDef, form: core.Form, meta: EagerMeta) -> bool:
    """True if the first result is the reshaped single input, and all others are empty."""
    if definition.planning.view is None or len(form.names_in) != 1 or not form.names_out:
        return False
    if form.outputs.get(definition.planning.view[0], [None])[0] != form.names_out[0]:
        return False
    return all(0 in meta.shapes[name] for name in form.names_out[1:])


def _reference(
    form: core.Form,
    outputs: list[gpu.Layout | None],
    device: CudaDevice | None = None,
) -> gpu.Run:
    """A function that runs the reference kernel on a list of arrays; its results do not share memory with them."""
    definition: OpDef = form.definition
    counts = [(slot, len(names)) for slot, names in form.inputs.items()]
    wanted = [(slot, form.outputs.get(slot.name, ())) for slot in definition.output_slots]
    order = {name: k for k, name in enumerate(form.names_out)}
    own: gpu.Own = _own if device is None else gpu.owner(device)

    def run(arrays: list[Array]) -> list[Array]:
        inputs: dict[str, list[Array]] = {}
        at = 0
        for slot, count in counts:
            inputs[slot] = arrays[at : at + count]
            at += count
        lods: dict[str, list[Any]] | None = None
        if definition.sequences.takes_lod:
            lods = {slot: [[]] * count for slot, count in counts}
        try:
            if device is None:
                results = definition.call(np, inputs, form.attrs, lods, on_numpy=True)
            else:
                results = gpu.call(definition, form, inputs, lods, device)
        except (EnforceNotMet, NotSupportedError, MemoryError):
            raise
        except Exception as error:
            shapes = ", ".join(
                f"{name}{list(a.shape)}" for name, a in zip(form.names_in, arrays, strict=True)
            )
            raise OperatorError(
                f"operator {definition.type} ({shapes}) failed: {type(error).__name__}: {error}"
            ) from error
        ordered: list[Array] = [None] * len(order)
        for (declared, names), result in zip(wanted, results, strict=True):
            for name, value in zip(names, result if declared.many else [result], strict=False):
                if value is not None and name:
                    layout = outputs[order[name]]
                    if layout is not None and isinstance(value, (np.ndarray, np.generic)):
                        check_result(definition.type, value, layout[1], layout[0])
                    ordered[order[name]] = own(value, layout, arrays)
        return ordered

    if device is None:
        return run
    return gpu.guarded(device, definition.type, run)


def _own(value: Any, declared: gpu.Layout | None, arrays: list[Array]) -> Any:
    """A result as a contiguous array of the declared type that owns its memory."""
    if isinstance(value, LodArray):
        value = value.array
    if not isinstance(value, (np.ndarray, np.generic, int, float)):
        return value  # sparse rows
    array = np.ascontiguousarray(value, dtype=declared[0] if declared is not None else None)
    if np.ndim(value) == 0:
        array = array.reshape(())
    if array.base is not None or any(array is given for given in arrays):
        array = array.copy()
    return array


def _differentiate(
    variant: core.Variant, wanted: tuple[bool, ...]
) -> tuple[Any, Any] | Literal[False] | None:
    """The VJP recipe for the gradients of the wanted inputs: indices of saved arrays and gradient operators.

    None without gradients, False if there is none for all sizes; see `Variant.recipe`.
    """
    form = variant.form
    definition: OpDef = form.definition
    if definition.grad is None:
        return None
    meta: EagerMeta = variant.meta
    names_in, names_out = form.names_in, form.names_out
    wants = {
        name
        for name, want in zip(names_in, wanted, strict=True)
        if want and meta.dtypes.get(name) in gradient_kinds(definition.type)
    }
    if not wants:
        return None
    view = OpView(definition, form.inputs, form.outputs, form.attrs, meta)
    guards = len(meta.sizes.guards) if variant.is_open and meta.sizes else 0
    position = {name: k for k, name in enumerate((*names_in, *names_out))}
    by_gradient = {grad_name(name): k for k, name in enumerate(names_in)}
    saved: list[int] = []
    steps = []
    intermediate: dict[str, int] = {}
    known = EagerMeta(meta)
    for name in (*names_in, *names_out):
        if name in known.shapes:
            known.set(grad_name(name), known.shapes[name], known.dtypes[name])
    pending: list[tuple[OpSpec, dict[str, list[str]], list[int]]] = []
    try:
        specs = definition.grad(view)
    except EnforceNotMet as error:
        # Raised only when the gradient is asked for, with the sizes of that call.
        return False if variant.is_open else ((), error)
    for spec in specs:
        outputs, targets = _targets(spec, by_gradient, names_in, wants)
        if outputs is None:
            continue
        pending.append((spec, outputs, targets))
        for names in spec.inputs.values():
            for name in names:
                if name in position and position[name] not in saved:
                    saved.append(position[name])
    count = len(saved)
    gradient_of = {grad_name(name): count + k for k, name in enumerate(names_out)}
    if variant.is_open and not dynamic_shapes.gradients_are_valid(meta, known, pending, guards):
        return False
    for spec, outputs, targets in pending:
        places = []
        for names in spec.inputs.values():
            for name in names:
                if name in intermediate:
                    places.append(count + len(names_out) + intermediate[name])
                elif name in gradient_of:
                    places.append(gradient_of[name])
                else:
                    places.append(saved.index(position[name]))
        step_form = core.Form(
            _specialise, find(spec.type), _listed(spec.inputs), outputs, dict(spec.attrs), known
        )
        for target, name in zip(targets, step_form.names_out, strict=True):
            if target == -2:
                intermediate[name] = len(intermediate)
        steps.append((step_form, tuple(places), tuple(targets)))
    return (tuple(saved), tuple(steps)) if steps else None


def _listed(slots: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {slot: list(names) for slot, names in slots.items() if names}


def _targets(
    spec: OpSpec, by_gradient: dict[str, int], names_in: tuple[str, ...], wants: set[str]
) -> tuple[dict[str, list[str]] | None, list[int]]:
    """The wanted outputs of a gradient operator (None if there are none), and the target of each one.

    A target is the index of the input that it is the gradient of, -1 if unwanted, -2 for an intermediate result.
    """
    outputs: dict[str, list[str]] = {}
    targets: list[int] = []
    useful = False
    for slot, names in spec.outputs.items():
        fate = []
        for name in names:
            if name not in by_gradient:
                fate.append(-2)
            else:
                index = by_gradient[name]
                fate.append(index if names_in[index] in wants else -1)
        if all(target == -1 for target in fate):
            continue
        useful = True
        outputs[slot] = list(names)
        targets += fate
    return (outputs if useful else None), targets


def explain(form: core.Form, code: int, err: tuple[int, ...]) -> Exception:
    """The exception for an error code of a native kernel of `form`."""
    return native_error(form.definition.type, dict.fromkeys(form.inputs, ""), code, err)
