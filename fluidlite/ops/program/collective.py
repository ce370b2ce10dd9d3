"""Operators by which the processes of a run exchange arrays (`fluidlite/distributed`); in one process they copy.

They are never left out of a plan, even if no operator reads their results, as the other processes wait for them.
`ring_id` and `use_calc_stream` choose a connection of NCCL and a stream of a GPU in Fluid; they have no effect here, as
a step makes the calls in the order of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.selected_rows import SelectedRows
from ...distributed import DistributedError, world
from ...distributed.communicator import REDUCTIONS
from ..grad_pairs import gradient_by
from ..host_fallback import hosted
from ..infer import same_as
from ..registry import Dispatch, Effects, OpView, Planning, RowRule, Sequences, register

_RING = {"ring_id": 0, "use_calc_stream": False}


def _check_size(op_type: str, nranks: int) -> None:
    if nranks != world().size:
        raise DistributedError(
            f"operator {op_type} was made for {nranks} processes, but this run has {world().size}: start the script "
            f"with `fluidlite launch -n {nranks}`, or build the program for as many as there are"
        )


def _reduce(reduction: str) -> Callable[..., Any]:
    @hosted
    def kernel(xp: Any, X: Any) -> Any:
        return world().all_reduce(X, reduction)

    return kernel


@hosted
def _reduce_by_attribute(xp: Any, X: Any, reduce_type: int) -> Any:
    return world().all_reduce(X, REDUCTIONS[reduce_type])


@hosted
def _gather_rows(xp: Any, X: SelectedRows) -> SelectedRows:
    """The sum of sparse gradients: the rows of all processes."""
    mine = X.held()
    return SelectedRows(
        world().all_gather(np.asarray(mine.rows)), world().all_gather(np.asarray(mine.values)), X.height
    )


for _reduction in REDUCTIONS:
    register(
        f"c_allreduce_{_reduction}",
        inputs=("X",),
        attrs=_RING,
        infer=same_as("X"),
        kernel=_reduce(_reduction),
        grad=gradient_by("c_allreduce_sum", attrs=lambda op: dict(op.attrs)) if _reduction == "sum" else None,
        dispatch=Dispatch(
            rows=RowRule(_gather_rows, slots=("X",), out="Out", count=lambda op: -1)
            if _reduction == "sum"
            else None
        ),
        effects=Effects(host=True),
        doc=f"The {_reduction} of what all processes have, element by element, in each of them.",
    )

register(
    "allreduce",
    inputs=("X",),
    attrs={"reduce_type": 0, "sync_mode": False},
    infer=same_as("X"),
    kernel=_reduce_by_attribute,
    no_grad=("Out",),
    effects=Effects(host=True),
    doc="The sum (reduce_type 0), prod (1), max (2) or min (3) of what all processes have.",
)


@hosted
def _from_root(xp: Any, X: Any, root: int) -> Any:
    return world().broadcast(X, root)


for _name, _attrs in (("c_broadcast", {**_RING, "root": 0}), ("broadcast", {"sync_mode": False, "root": 0})):
    register(
        _name,
        inputs=("X",),
        attrs=_attrs,
        infer=same_as("X"),
        kernel=_from_root,
        effects=Effects(host=True),
        doc="What process `root` has, in each of them.",
    )


@hosted
def _gather(xp: Any, X: Any, nranks: int) -> Any:
    _check_size("c_allgather", nranks)
    return world().all_gather(X)


def _gather_infer(op: OpView) -> None:
    rows, *rest = _rows(op)
    op.set("Out", (rows if rows == -1 else rows * op.attr("nranks"), *rest), op.dtype("X"))


def _rows(op: OpView) -> tuple[int, ...]:
    if op.attr("nranks") < 1:
        raise op.fail(f"nranks must be the number of processes, 1 or more, got {op.attr('nranks')}")
    if not op.shape("X"):
        raise op.fail("X must have rows, got a number")
    return op.shape("X")


register(
    "c_allgather",
    inputs=("X",),
    attrs={**_RING, "nranks": 1},
    infer=_gather_infer,
    kernel=_gather,
    grad=gradient_by("c_reducescatter", attrs=lambda op: dict(op.attrs)),
    sequences=Sequences(source=None),
    effects=Effects(host=True),
    doc="The rows that the processes have, in the order of their ranks; each has as many.",
)


@hosted
def _scatter(xp: Any, X: Any, nranks: int) -> Any:
    _check_size("c_reducescatter", nranks)
    return world().reduce_scatter(X)


def _scatter_infer(op: OpView) -> None:
    rows, *rest = _rows(op)
    count = op.attr("nranks")
    if rows != -1 and rows % count:
        raise op.fail(f"the rows of X must be a multiple of nranks, {count}, got {rows}")
    op.set("Out", (rows if rows == -1 else rows // count, *rest), op.dtype("X"))


register(
    "c_reducescatter",
    inputs=("X",),
    attrs={**_RING, "nranks": 1},
    infer=_scatter_infer,
    kernel=_scatter,
    sequences=Sequences(source=None),
    effects=Effects(host=True),
    doc="The sum of what all processes have; each gets its share of the rows.",
)

_begun: dict[int, Callable[[], list[np.ndarray]]] = {}
"""Pending allreduces, by the number of the bucket."""


@hosted
def _begin_sums(xp: Any, X: list[Any], bucket: int) -> tuple[()]:
    _begun[bucket] = world().begin_sums(X)
    return ()


@hosted
def _sums(xp: Any, X: list[Any], bucket: int) -> list[np.ndarray]:
    waits = _begun.pop(bucket, None)
    if waits is not None:
        return waits()
    total = world().all_reduce(np.concatenate([array.reshape(-1) for array in X]))
    parts = np.split(total, np.cumsum([array.size for array in X])[:-1])
    return [part.reshape(array.shape) for part, array in zip(parts, X, strict=True)]


def _sums_infer(op: OpView) -> None:
    for index in range(op.count("X")):
        op.set("Out", op.shape("X", index), op.dtype("X", index), index)


register(
    "begin_gradient_sums",
    inputs=("X*",),
    outputs=(),
    attrs={"bucket": 0},
    kernel=_begin_sums,
    effects=Effects(host=True),
    doc="Begins to add X of all processes up, in one message, which travels while other operators run.",
)
register(
    "gradient_sums",
    inputs=("X*",),
    outputs=("Out*",),
    attrs={"bucket": 0},
    infer=_sums_infer,
    kernel=_sums,
    no_grad=("Out",),
    sequences=Sequences(source=None),
    effects=Effects(host=True),
    doc="The sums of X over all processes: those that `begin_gradient_sums` of this bucket has begun, or made now.",
)

for _name in ("c_sync_calc_stream", "c_sync_comm_stream"):
    register(
        _name,
        inputs=("X",),
        attrs={"ring_id": 0} if "comm" in _name else {},
        infer=same_as("X"),
        kernel=lambda xp, X: X,
        dispatch=Dispatch(rows=RowRule(lambda xp, X: X, slots=("X",), out="Out")),
        effects=Effects(host=True),
        planning=Planning(noop=("Out", "X")),
        doc="X as it is: what it waits for on a GPU is done when it runs.",
    )


@hosted
def _connect(xp: Any, nranks: int) -> tuple[()]:
    _check_size("c_comm_init", nranks)
    return ()


register(
    "c_comm_init",
    inputs=("X",),
    outputs=(),
    attrs={"nranks": 1, "rank": 0, "ring_id": 0},
    kernel=_connect,
    effects=Effects(uninitialized=("X",), host=True),
    doc="Connects the processes; raises DistributedError if there are not as many as the program was made for.",
)
register(
    "c_comm_init_all",
    inputs=(),
    outputs=(),
    attrs={"devices": [], "ring_id": 0},
    effects=Effects(host=True),
    doc="Connects the devices of one process: nothing to do.",
)
for _name, _out, _addresses in (
    ("c_gen_nccl_id", "Out", {"rank": 0, "endpoint": "", "other_endpoints": []}),
    (
        "gen_nccl_id",
        "NCCLID",
        {
            "trainers": [],
            "trainer_id": 0,
            "nccl_comm_num": 1,
            "use_hierarchical_allreduce": False,
            "hierarchical_allreduce_inter_nranks": 1,
        },
    ),
):
    register(
        _name,
        inputs=(),
        outputs=(_out,),
        attrs=_addresses,
        effects=Effects(host=True),
        doc="The name under which processes find each other through NCCL: MPI needs none, and nothing is done.",
    )
