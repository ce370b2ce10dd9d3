"""Programs as text and pictures, finding results that are not finite (`fluid.debugger`); `fluid.install_check`."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..base.dtypes import FLOATS, VarType, to_numpy
from ..base.place import CPUPlace, CUDAPlace, Place, cpu_places, cuda_device_count
from ..base.unique_name import guard as names
from ..executor import Executor, Scope, as_numpy, scope_guard
from ..executor.parallel.compiler import CompiledProgram
from ..framework import Block, Operator, OpRole, Program, Variable, default_main_program, program_guard
from .dygraph import Layer, Linear, guard, to_variable
from .graphviz import GraphPreviewGenerator, Node
from .layers import data, fc, reduce_sum
from .optimizer import SGD

reprtpl = "{ttype} {name} ({reprs})"


def repr_data_type(type: int) -> str:
    """The name of an element type, such as 'float32'."""
    return to_numpy(VarType(type)).name


def _shown(given: Any) -> Any:
    """The Program, Block, Operator or Variable that a `desc` shows."""
    return getattr(given, "_shown", given)


def repr_tensor(proto: Any) -> str:
    """Element type and shape of a variable."""
    var = _shown(proto)
    return f"tensor(type={repr_data_type(var.dtype)}, shape={list(var.shape)})"


def repr_lodtensor(proto: Any) -> str | None:
    """A variable that is a tensor, as text; None for another one."""
    var = _shown(proto)
    if var.type != VarType.LOD_TENSOR:
        return None
    level = f"level={var.lod_level}, " if var.lod_level else ""
    kind = "LoDTensor" if var.lod_level else "Tensor"
    return reprtpl.format(ttype=kind, name=var.name, reprs=level + repr_tensor(var))


def repr_selected_rows(proto: Any) -> str | None:
    """A variable that is a sparse gradient, as text; None for another one."""
    var = _shown(proto)
    if var.type != VarType.SELECTED_ROWS:
        return None
    return reprtpl.format(ttype="SelectedRows", name=var.name, reprs=repr_tensor(var))


def repr_tensor_array(proto: Any) -> str | None:
    """A variable that is an array of tensors, as text; None for another one."""
    var = _shown(proto)
    if var.type != VarType.LOD_TENSOR_ARRAY:
        return None
    return reprtpl.format(
        ttype="TensorArray", name=var.name, reprs=f"level={var.lod_level}, {repr_tensor(var)}"
    )


type_handlers = [repr_lodtensor, repr_selected_rows, repr_tensor_array]


def repr_var(vardesc: Any) -> str:
    """A variable on one line: its kind, name, element type and shape."""
    var = _shown(vardesc)
    found = next((text for handler in type_handlers if (text := handler(var)) is not None), None)
    return found or reprtpl.format(ttype=var.type.name, name=var.name, reprs="")


def repr_attr(desc: Any) -> tuple[str, tuple[str, Any]]:
    """An attribute, given as (name, value): `name=value`, and the two."""
    name, value = desc
    if isinstance(value, Block):
        value = value.idx
    return f"{name}={value}", (name, value)


def _fill_constant(op: Operator) -> str | None:
    if op.type != "fill_constant":
        return None
    return f"{op.output('Out')[0]} = {op.attr('value')} [shape={list(op.attr('shape'))}]"


op_repr_handlers = [_fill_constant]


def repr_op(opdesc: Any) -> str:
    """An operator on one line: `results = type(SLOT=variables) [{attributes}]`."""
    op = _shown(opdesc)
    found = next((text for handler in op_repr_handlers if (text := handler(op)) is not None), None)
    if found is not None:
        return found
    outputs = [name for slot in sorted(op.outputs) for name in op.output(slot)]
    inputs = [f"{slot}={_one_or_list(op.input(slot))}" for slot in sorted(op.inputs) if op.input(slot)]
    attrs = [repr_attr((name, op.attr(name)))[0] for name in op.attr_names if op.attr(name) is not None]
    return f"{_one_or_list(outputs)} = {op.type}({', '.join(inputs)}) [{{{','.join(attrs)}}}]"


def _one_or_list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"[{','.join(names)}]"


def pprint_program_codes(program_desc: Any) -> str:
    """The blocks of a program as text, without gradients and updates."""
    return "\n".join(pprint_block_codes(block) for block in _shown(program_desc).blocks)


def pprint_block_codes(block_desc: Any, show_backward: bool = False) -> str:
    """Variables and operators of a block as text; gradients and updates only with `show_backward`."""
    block: Block = _shown(block_desc)
    variables = [var for var in block.vars.values() if show_backward or "@GRAD" not in var.name]
    training = OpRole.Backward | OpRole.Optimize
    ops = [op for op in block.ops if show_backward or not op.attr("op_role") & training]
    lines = [f"// block-{block.idx}  parent-{block.parent_idx}", "// variables", *map(repr_var, variables)]
    return "\n".join([*lines, "", "// operators", *map(repr_op, ops), ""])


def draw_block_graphviz(
    block: Block, highlights: Iterable[str] | None = None, path: str = "./temp.dot"
) -> None:
    """Write a picture of a block's operators and variables (`fluid.debugger.draw_block_graphviz`).

    Args:
        highlights: regular expressions; what has a name that one of them is found in gets another colour.
        path: where the graph goes, ending with `.dot`; Graphviz makes a PDF beside it.
    """
    patterns = [re.compile(pattern) for pattern in highlights or ()]

    def marked(name: str) -> bool:
        return any(pattern.search(name) for pattern in patterns)

    graph = GraphPreviewGenerator("some graph")
    nodes: dict[str, Node] = {}

    def node(name: str) -> Node:
        if name not in nodes:
            var = block._find_var_recursive(name)
            if var is not None and var.persistable:
                nodes[name] = graph.add_param(
                    name, f"type: {var.type.name}<br />{repr_var(var)}", marked(name)
                )
            else:
                nodes[name] = graph.add_arg(name, marked(name))
        return nodes[name]

    for op in block.ops:
        drawn = graph.add_op(op.type, highlight=marked(op.type))
        for name in op.input_arg_names:
            graph.add_edge(node(name), drawn, highlight=marked(name))
        for name in op.output_arg_names:
            graph.add_edge(drawn, node(name), highlight=marked(name))
    graph(path, show=False)


def prepare_fast_nan_inf_debug(_program: Program | None) -> None:
    """Get a program ready for `run_fast_nan_inf_debug`: nothing is left to do."""


def run_fast_nan_inf_debug(
    executor: Executor,
    program: Program | None = None,
    feed: Mapping[str, Any] | None = None,
    fetch_list: Sequence[Variable | str] | None = None,
    feed_var_name: str = "feed",
    fetch_var_name: str = "fetch",
    scope: Scope | None = None,
    return_numpy: bool = True,
    use_program_cache: bool = False,
    dump_core: bool = True,
) -> Any:
    """`executor.run`, which logs the first operator of the first block with a result that is not finite.

    All results are kept for that, so that more memory is needed. `dump_core` changes nothing.
    """
    program = default_main_program() if program is None else program
    asked = list(fetch_list or ())
    made = dict.fromkeys(name for op in program.global_block().ops for name in op.output_arg_names)
    names = [name for name in made if _may_be_infinite(program.global_block(), name)]
    found = executor.run(
        program,
        feed=feed,
        fetch_list=[*asked, *names],
        feed_var_name=feed_var_name,
        fetch_var_name=fetch_var_name,
        scope=scope,
        return_numpy=False,
        use_program_cache=use_program_cache,
    )
    for name, value in zip(names, found[len(asked) :], strict=True):
        if not np.isfinite(np.asarray(value)).all():
            (op, *_) = (op for op in program.global_block().ops if name in op.output_arg_names)
            logging.warning("operator %s is the first that is not finite: %s", op.type, repr_op(op))
            break
    return as_numpy(found[: len(asked)]) if return_numpy else found[: len(asked)]


def _may_be_infinite(block: Block, name: str) -> bool:
    var = block.vars.get(name)
    return var is not None and var.type == VarType.LOD_TENSOR and var.dtype in FLOATS


class SimpleLayer(Layer):
    """A fully connected layer, `input_size` to 3, whose results are added up."""

    def __init__(self, input_size: int) -> None:
        super().__init__()
        self._linear1 = Linear(input_size, 3)

    def forward(self, inputs: object) -> object:
        return reduce_sum(self._linear1(inputs))


def run_check() -> None:
    """Train a small network on one device, on two CPU places, and in dygraph mode, and say that it works.

    Raises what fails. Nothing of the caller's programs, names and scopes is touched.
    """
    place: Place = CUDAPlace(0) if cuda_device_count() else CPUPlace()
    batch = np.array([[1.0, 2.0], [3.0, 4.0]], "float32")
    main, startup = Program(), Program()
    with program_guard(main, startup), names(), scope_guard(Scope()):
        loss = reduce_sum(fc(data("inp", [2], dtype="float32"), 3))
        SGD(0.01).minimize(loss)
        exe = Executor(place)
        exe.run(startup)
        exe.run(main, feed={"inp": batch}, fetch_list=[loss])
        two = CompiledProgram(main).with_data_parallel(loss.name, places=cpu_places(2))
        Executor(CPUPlace()).run(two, feed={"inp": np.repeat(batch, 2, 0)}, fetch_list=[loss])
    with guard(place), names():
        SimpleLayer(2)(to_variable(batch)).backward()  # type: ignore[attr-defined]
    print(f"fluidlite works on {place!r}: programs, data parallelism and dygraph mode.")
