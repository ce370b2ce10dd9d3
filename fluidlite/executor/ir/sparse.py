"""SelectedRows in plans: pairs of arrays (`ops/tensor/selected_rows.py`), dense for operators without a rule."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from ...framework import Operator
from ...ops.registry import OpView, RowRule
from ...ops.tensor.selected_rows import ROWS, VALUES
from .errors import Unsupported
from .inference import in_place_of, renamed
from .type_env import TypeEnv


def wholes(names: Iterable[str]) -> list[str]:
    """The variables of `names`, which may be arrays of SelectedRows."""
    return [name.removesuffix(ROWS).removesuffix(VALUES) for name in names]


def check(ops: Sequence[Operator], fetches: Iterable[str]) -> None:
    """Raise Unsupported if the number of different rows, which depends on data, would show in a shape.

    Plans pad the results of such operators (`padding_rows`) with rows of zeros.
    """
    unpacking = [op for op in ops if op.definition.planning.padding_rows == "left"]
    read_by: defaultdict[str, list[Operator]] = defaultdict(list)
    for op in ops if unpacking else ():
        for name in op.input_arg_names:
            read_by[name].append(op)
    names = {name for op in unpacking for name in op.output_arg_names}  # padded
    while names:
        if names.intersection(fetches):
            raise Unsupported(f"the number of rows of the fetched variables {sorted(names)} depends on data")
        readers = [reader for name in names for reader in read_by[name]]
        kept = [reader for reader in readers if reader.definition.planning.padding_rows == "kept"]
        if not all(_sums(reader) for reader in readers if reader not in kept):
            raise Unsupported(f"an operator reads {sorted(names)}, whose number of rows depends on data")
        names = {name for reader in kept for name in reader.output_arg_names}


def _sums(op: Operator) -> bool:
    """True if rows of zeros do not change the results of an operator."""
    return op.definition.planning.padding_rows == "summed" and bool(op.attr("reduce_all"))


def densified(op: Operator, meta: TypeEnv) -> list[Operator]:
    """The operators to run for `op`: itself, or conversions of its SelectedRows to dense arrays, and it on those."""
    if meta.sparse.keys().isdisjoint(op.reads()):
        return [op]
    sparse = [name for name in op.input_arg_names if name in meta.sparse]
    view = OpView(op.definition, op.inputs, op.outputs, op.attrs, meta)
    if rule(op, view) is not None:
        if set(sparse).intersection(op.output_arg_names):
            raise Unsupported(f"operator {op.type} overwrites the SelectedRows that it reads")
        return [op]
    before = [dense(op, name) for name in dict.fromkeys(sparse) if not meta.has(dense_name(name))]
    return [*before, renamed(op, {name: dense_name(name) for name in sparse}, outputs=False)]


def dense(op: Operator, name: str) -> Operator:
    """An operator that makes the SelectedRows `name` dense, with the call site of `op`."""
    return in_place_of(op, "dense_from_selected_rows", {"X": [name]}, {"Out": [dense_name(name)]}, {})


def dense_name(name: str) -> str:
    """The name of the dense form of SelectedRows in a plan."""
    return name + "@DENSE"


def rule(op: Operator, view: OpView) -> RowRule | None:
    """The rule by which `op` works on SelectedRows; None if it works on arrays."""
    found = op.definition.dispatch.rows
    return found if found is not None and found.applies(view) else None


def check_written_once(op: Operator, meta: TypeEnv, writes: Counter[str]) -> None:
    """Raise Unsupported for persistable SelectedRows, or those that several operators write."""
    for name in op.writes():
        if name in meta.sparse and (writes[name] > 1 or meta.is_persistable(name)):
            raise Unsupported(f"the SelectedRows {name!r} are persistable or written several times")
