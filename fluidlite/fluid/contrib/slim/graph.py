"""Programs as graphs, for strategies (`fluid.contrib.slim.graph`)."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ....base.place import CPUPlace, Place
from ....base.storage.files import atomic_files, write_file
from ....executor import Executor, Scope, global_scope, scope_guard
from ....executor.parallel.compiler import CompiledProgram
from ....executor.parallel.strategies import BuildStrategy
from ....framework import Operator, OpRole, Parameter, Program, Variable, program_guard
from ....reader.feeder import DataFeeder
from ... import io
from ...io.saving import read_file

__path__: list[str] = []  # the modules below are views: base/names/views.py

__all__ = ["GraphWrapper", "OpWrapper", "SlimGraphExecutor", "VarWrapper"]

OPTIMIZER_OPS = (
    ["momentum", "lars_momentum", "adagrad", "adam", "adamax", "dpsgd", "decayed_adagrad"]
    + ["adadelta", "rmsprop"]
)  # fmt: skip

Nodes = Mapping[str, str] | Sequence[tuple[str, str]]


class VarWrapper:
    """A variable of a graph (`fluid.contrib.slim.graph.VarWrapper`)."""

    def __init__(self, var: Variable, graph: GraphWrapper) -> None:
        if not isinstance(var, Variable) or not isinstance(graph, GraphWrapper):
            raise AssertionError("VarWrapper takes a Variable and a GraphWrapper")
        self._var = var
        self._graph = graph

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VarWrapper) and self._var.name == other._var.name

    def __hash__(self) -> int:
        return hash(self._var.name)

    def name(self) -> str:
        return self._var.name

    def shape(self) -> tuple[int, ...]:
        return self._var.shape

    def set_shape(self, shape: Sequence[int]) -> None:
        self._var.desc.set_shape(list(shape))

    def inputs(self) -> list[OpWrapper]:
        """The operators that read it."""
        return [op for op in self._graph.ops() if self in op.all_inputs()]

    def outputs(self) -> list[OpWrapper]:
        """The operators that write it."""
        return [op for op in self._graph.ops() if self in op.all_outputs()]


class OpWrapper:
    """An operator of a graph (`fluid.contrib.slim.graph.OpWrapper`)."""

    def __init__(self, op: Operator, graph: GraphWrapper) -> None:
        if not isinstance(op, Operator) or not isinstance(graph, GraphWrapper):
            raise AssertionError("OpWrapper takes an Operator and a GraphWrapper")
        self._op = op
        self._graph = graph

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpWrapper) and self._op is other._op

    __hash__ = None  # type: ignore[assignment]

    def all_inputs(self) -> list[VarWrapper]:
        return self._wrapped(self._op.input_arg_names)

    def all_outputs(self) -> list[VarWrapper]:
        return self._wrapped(self._op.output_arg_names)

    def _wrapped(self, names: Sequence[str]) -> list[VarWrapper]:
        variables = (self._op.block._find_var_recursive(name) for name in names)
        return [VarWrapper(var, self._graph) for var in variables if var is not None]

    def idx(self) -> int:
        """Its index in the block."""
        return self._op.block.ops.index(self._op)

    def type(self) -> str:
        return self._op.type

    def is_bwd_op(self) -> bool:
        """Whether it computes gradients."""
        return bool(self._role() & OpRole.Backward)

    def is_opt_op(self) -> bool:
        """Whether it updates parameters."""
        return self.type() in OPTIMIZER_OPS

    def _role(self) -> int:
        return int(self._op.attr("op_role"))

    def inputs(self, name: str) -> list[VarWrapper]:
        """The variables of an input slot."""
        return self._wrapped(self._op.input(name))

    def outputs(self, name: str) -> list[VarWrapper]:
        """The variables of an output slot."""
        return self._wrapped(self._op.output(name))

    def attr(self, name: str) -> Any:
        return self._op.attr(name)

    def set_attr(self, key: str, value: Any) -> None:
        self._op._set_attr(key, value)


class GraphWrapper:
    """A program with its named inputs and outputs (`fluid.contrib.slim.graph.GraphWrapper`).

    Args:
        program: the program; None for an empty one.
        in_nodes, out_nodes: pairs of a name for people and the name of a variable, in order; kept in dictionaries.
    """

    def __init__(
        self, program: Program | None = None, in_nodes: Nodes | None = (), out_nodes: Nodes | None = ()
    ) -> None:
        self.program = Program() if program is None else program
        self.persistables = {var.name: var for var in self.program.list_vars() if var.persistable}
        self.teacher_persistables: dict[str, Variable] = {}
        self.compiled_graph: CompiledProgram | None = None
        self.in_nodes = OrderedDict(in_nodes or ())
        self.out_nodes = OrderedDict(out_nodes or ())
        self._attrs: OrderedDict[str, Any] = OrderedDict()

    def all_parameters(self) -> list[VarWrapper]:
        return [VarWrapper(var, self) for var in self.program.all_parameters()]

    def is_parameter(self, var: VarWrapper) -> bool:
        return isinstance(var._var, Parameter)

    def is_persistable(self, var: VarWrapper) -> bool:
        return var._var.persistable

    def compile(self, for_parallel: bool = True, for_test: bool = False, mem_opt: bool = False) -> None:
        """Make `compiled_graph`, which `SlimGraphExecutor` then runs.

        With `for_test` a program without a loss; with `for_parallel` on all places there are.
        """
        program = self.program.clone(for_test=True) if for_test else self.program
        compiled = CompiledProgram(program)
        if for_parallel:
            loss = self.out_nodes.get("loss")
            compiled = compiled.with_data_parallel(
                loss_name=None if for_test else loss, build_strategy=BuildStrategy()
            )
        self.compiled_graph = compiled

    def ops(self) -> list[OpWrapper]:
        """The operators of all blocks."""
        return [OpWrapper(op, self) for block in self.program.blocks for op in block.ops]

    def vars(self) -> list[VarWrapper]:
        """The variables of all blocks."""
        return [VarWrapper(var, self) for var in self.program.list_vars()]

    def var(self, name: str) -> VarWrapper:
        """The variable of this name; ValueError if there is none."""
        return VarWrapper(self.program.global_block().var(name), self)

    def clone(self, for_test: bool = False) -> GraphWrapper:
        """A copy of the program with the same names."""
        return GraphWrapper(self.program.clone(for_test), self.in_nodes.copy(), self.out_nodes.copy())

    def merge(self, graph: GraphWrapper) -> None:
        """Add the variables and operators of another graph's first block; variables of equal names are shared."""
        block = self.program.global_block()
        for var in graph.program.list_vars():
            if var.name not in block.vars:
                block._clone_variable(var, force_persistable=False)
            if var.persistable:
                self.teacher_persistables[var.name] = block.var(var.name)
        for op in graph.program.global_block().ops:
            block.append_op(
                type=op.type,
                inputs={slot: [block.var(name) for name in op.input(slot)] for slot in op.input_names},
                outputs={slot: [block.var(name) for name in op.output(slot)] for slot in op.output_names},
                attrs=dict(op.attrs),
            )

    def get_param_by_op(self, op: OpWrapper) -> list[VarWrapper]:
        """The parameters that an operator reads."""
        return [var for var in op.all_inputs() if self.is_parameter(var)]

    def pre_ops(self, op: OpWrapper) -> list[OpWrapper]:
        """The producers of the inputs of `op`, one for each variable."""
        inputs = op.all_inputs()
        return [other for other in self.ops() for var in other.all_outputs() if var in inputs]

    def next_ops(self, op: OpWrapper) -> list[OpWrapper]:
        """The consumers of the outputs of `op`, one for each variable."""
        outputs = op.all_outputs()
        return [other for other in self.ops() for var in other.all_inputs() if var in outputs]

    def numel_params(self) -> int:
        """The number of elements of all parameters."""
        return sum(prod(var.shape()) for var in self.all_parameters())

    def flops(self, only_conv: bool = False) -> float:
        """About how many operations one sample takes: convolutions, and unless `only_conv` products, pooling,
        normalization and activations.
        """
        total: float = 0
        for op in self.ops():
            kind = op.type()
            if kind in ("conv2d", "depthwise_conv2d"):
                weight, out = op.inputs("Filter")[0].shape(), op.outputs("Output")[0].shape()
                total += 2.0 * prod(out[1:]) * prod(weight[1:]) / op.attr("groups")
            elif only_conv:
                continue
            elif kind == "pool2d":
                total += prod(op.outputs("Out")[0].shape()[1:]) * prod(op.attr("ksize"))
            elif kind == "mul":
                total += 2 * op.inputs("X")[0].shape()[1] * op.inputs("Y")[0].shape()[1]
            elif kind in ("relu", "sigmoid", "batch_norm"):
                total += prod(op.inputs("X")[0].shape()[1:])
        return total

    def save_model(self, path: str, exe: Any) -> None:
        """Write the program to `__model__` and the persistables to `__params__` of the folder `path`."""
        with atomic_files():
            write_file(os.path.join(path, "__model__"), self.program.desc.serialize_to_string())
            io.save_persistables(exe.exe, path, main_program=self.program, filename="__params__")

    def save_infer_model(
        self, path: str, exe: Any, in_out: tuple[list[str], list[str]], program_only: bool = False
    ) -> None:
        """Write the part that computes `in_out[1]` from `in_out[0]` (names) to `__model__.infer` (and `__params__`)."""
        block = self.program.global_block()
        io.save_inference_model(
            dirname=path,
            feeded_var_names=list(in_out[0]),
            target_vars=[block.var(name) for name in in_out[1]],
            executor=exe.exe,
            main_program=self.program.clone(),
            model_filename="__model__.infer",
            params_filename="__params__",
            program_only=program_only,
        )

    def save_persistables(self, path: str, exe: Any) -> None:
        """Write all persistable variables, but those of teachers, to files in the folder `path`."""
        io.save_vars(exe.exe, path, main_program=self.program, vars=self._own())

    def load_persistables(self, path: str, exe: Any) -> None:
        """Read those persistable variables for which there are files in the folder `path`.

        They may be of other shapes, as those of a pruned model are: the graph's variables get these. What an
        optimizer keeps of a parameter without a file of its own is cut to the parameter's shape.
        """
        there = [var for var in self._own() if os.path.exists(os.path.join(path, var.name))]
        names = {var.name for var in there}
        for var in there:
            (tensor,) = read_file(Path(path, var.name), [var.name]).values()
            for held in self.accumulators(VarWrapper(var, self)):
                if held.name() not in names:
                    _cut(held, tensor.shape())
            var.desc.set_shape(tensor.shape())
        io.load_vars(exe.exe, path, main_program=self.program, vars=there)

    def accumulators(self, param: VarWrapper) -> list[VarWrapper]:
        """The accumulators of a parameter, of its shape."""
        return [
            var
            for op in param.inputs()
            if op.is_opt_op()
            for var in op.all_inputs()
            if var != param and self.is_persistable(var) and var.shape() == param.shape() != (1,)
        ]

    def _own(self) -> list[Variable]:
        return [
            var
            for var in self.program.list_vars()
            if io.is_persistable(var) and var.name not in self.teacher_persistables
        ]

    def update_param_shape(self, scope: Scope) -> None:
        """Set the shapes of parameters to those of their values in `scope`."""
        for param in self.all_parameters():
            holder = scope.find_var(param.name())
            if holder is not None:
                param.set_shape(holder.get_tensor().shape())

    def infer_shape(self) -> None:
        """Infer the shapes of operators' results anew."""
        for op in self.ops():
            if op.type() != "conditional_block":
                op._op.desc.infer_shape(op._op.block.desc)

    def update_groups_of_conv(self) -> None:
        """Set the groups of depthwise convolutions to the number of their filters."""
        for op in self.ops():
            if op.type() in ("depthwise_conv2d", "depthwise_conv2d_grad"):
                op.set_attr("groups", op.inputs("Filter")[0].shape()[0])

    def get_optimize_graph(
        self, optimizer: Any, place: Any, scope: Scope, no_grad_var_names: Sequence[str] = ()
    ) -> GraphWrapper:
        """A copy in which `optimizer` minimizes the loss, `out_nodes["loss"]` or `["cost"]`.

        Its accumulators are made in `scope`, with the values that they start from; other variables there stay.
        Raises ValueError if no loss is named.
        """
        graph = self.clone()
        key = next((name for name in ("loss", "cost") if name in graph.out_nodes), None)
        if key is None:
            raise ValueError("out_nodes must name the loss as 'loss' or 'cost'")
        startup = Program()
        with program_guard(graph.program, startup):
            loss = graph.var(graph.out_nodes[key])._var
            optimizer.minimize(loss, no_grad_set=set(no_grad_var_names) or None)
        block = startup.global_block()
        unset = set()
        for name in block.vars:
            holder = scope.find_var(name)
            if holder is None or not holder.is_set():
                unset.add(name)
        block.ops = [op for op in block.ops if not unset.isdisjoint(op.output_arg_names)]
        startup._changed()
        with scope_guard(scope):
            Executor(place).run(startup, scope=scope)
        return GraphWrapper(graph.program, self.in_nodes, graph.out_nodes)


def _cut(var: VarWrapper, shape: Sequence[int]) -> None:
    """Cut a variable and its value in the current scope down to the first entries of each axis."""
    var.set_shape(shape)
    holder = global_scope().find_var(var.name())
    if holder is not None and holder.is_set():
        tensor = holder.get_tensor()
        tensor.set(np.array(tensor)[tuple(map(slice, shape))], CPUPlace())


class SlimGraphExecutor:
    """Runs a `GraphWrapper` at `place` (`fluid.contrib.slim.graph.SlimGraphExecutor`)."""

    def __init__(self, place: Place) -> None:
        self.exe = Executor(place)
        self.place = place

    def run(self, graph: GraphWrapper, scope: Scope, data: Any = None) -> tuple[list[Any], list[str]]:
        """The values of the graph's `out_nodes`, and their names there.

        `data`: samples in the order of `in_nodes`, or a feed dictionary in a list; None if the program reads by itself.
        """
        feed = None
        if data is not None:
            if len(data) == 1 and isinstance(data[0], dict):
                feed = data[0]
            else:
                feeder = DataFeeder(list(graph.in_nodes.values()), self.place, program=graph.program)
                feed = feeder.feed(data)
        fetches = list(graph.out_nodes.values())
        program = graph.compiled_graph or graph.program
        with scope_guard(scope):
            results = self.exe.run(program, feed=feed, fetch_list=fetches, scope=scope)
        return [float(np.mean(value)) for value in results], list(graph.out_nodes)
