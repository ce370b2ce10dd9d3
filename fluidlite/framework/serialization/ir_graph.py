"""`IrGraph`: a program as a graph of operators and variables, for passes that rewrite it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...base.dtypes import VarType
from ...base.storage.files import write_file
from ..block import Block
from ..operator import Operator
from ..program import Program, copy_op
from ..variable import Variable
from .descs import OpDesc, ProgramDesc, VarDesc

EMPTY = "@EMPTY@"


class Graph:
    """The native graph under an `IrGraph`: a copy of the program of `desc` (`fluid.core.Graph`)."""

    def __init__(self, desc: ProgramDesc) -> None:
        self._program = desc._shown.clone()
        self._nodes: IrGraph | None = None

    def _to_program(self) -> Program:
        """The program as the passes that were applied to the graph left it."""
        return self._program if self._nodes is None else self._nodes.to_program()


class IrNode:
    """An operator or a variable of an `IrGraph` with its neighbours (`fluid.framework.IrNode`)."""

    _count = itertools.count()

    def __init__(self) -> None:
        self._id = next(IrNode._count)
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    @property
    def node(self) -> IrNode:
        return self

    @property
    def inputs(self) -> list[Any]:
        return list(self._inputs)

    @property
    def outputs(self) -> list[Any]:
        return list(self._outputs)

    def id(self) -> int:
        return self._id

    def name(self) -> str:
        raise NotImplementedError

    def is_op(self) -> bool:
        return isinstance(self, IrOpNode)

    def is_var(self) -> bool:
        return isinstance(self, IrVarNode)

    def is_ctrl_var(self) -> bool:
        """Whether this is a control dependency between two operators."""
        return False

    def var(self) -> VarDesc | None:
        return None

    def op(self) -> OpDesc | None:
        return None

    def clear_inputs(self) -> None:
        self._inputs.clear()

    def clear_outputs(self) -> None:
        self._outputs.clear()

    def append_input(self, node: IrNode) -> None:
        self._inputs.append(node)

    def append_output(self, node: IrNode) -> None:
        self._outputs.append(node)

    def remove_input(self, node: IrNode) -> None:
        self._inputs = [other for other in self._inputs if other is not node]

    def remove_output(self, node: IrNode) -> None:
        self._outputs = [other for other in self._outputs if other is not node]

    def remove_input_by_id(self, node_id: int) -> None:
        self._inputs = [other for other in self._inputs if other.id() != node_id]

    def remove_output_by_id(self, node_id: int) -> None:
        self._outputs = [other for other in self._outputs if other.id() != node_id]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name()!r})"


class IrVarNode(IrNode):
    """A value of a variable: each operator that writes one makes another node (`fluid.framework.IrVarNode`)."""

    def __init__(self, variable: Variable | None, name: str) -> None:
        super().__init__()
        self._variable = variable
        self._name = name

    def name(self) -> str:
        return self._name

    def is_ctrl_var(self) -> bool:
        return self._variable is None

    def _known(self) -> Variable:
        if self._variable is None:
            raise AssertionError(f"{self._name} is no variable but an order of operators")
        return self._variable

    def var(self) -> VarDesc | None:
        return None if self._variable is None else VarDesc(self._variable)

    def persistable(self) -> bool:
        return self._known().persistable

    def type(self) -> VarType:
        return self._known().type

    def dtype(self) -> VarType:
        return self._known().dtype

    def shape(self) -> list[int]:
        return list(self._known().shape)

    def set_shape(self, shape: Sequence[int]) -> None:
        VarDesc(self._known()).set_shape(shape)


class IrOpNode(IrNode):
    """An operator (`fluid.framework.IrOpNode`)."""

    def __init__(self, operator: Operator) -> None:
        super().__init__()
        self._operator = operator

    def name(self) -> str:
        return self._operator.type

    def op(self) -> OpDesc:
        return OpDesc(self._operator)

    def input(self, name: str) -> list[str]:
        return self._operator.input(name)

    def output(self, name: str) -> list[str]:
        return self._operator.output(name)

    def input_arg_names(self) -> list[str]:
        return self._operator.input_arg_names

    def output_arg_names(self) -> list[str]:
        return self._operator.output_arg_names

    def rename_input(self, old_input_name: str, new_input_name: str) -> None:
        self._operator._rename_input(old_input_name, new_input_name)
        self._rename_role(old_input_name, new_input_name)

    def rename_output(self, old_output_name: str, new_output_name: str) -> None:
        self._operator._rename_output(old_output_name, new_output_name)
        self._rename_role(old_output_name, new_output_name)

    def _rename_role(self, old: str, new: str) -> None:
        """Rename a variable in `op_role_var`, too, as in Fluid."""
        names = self._operator.attrs.get("op_role_var")
        if names:
            self._operator.attrs["op_role_var"] = [new if name == old else name for name in names]

    def set_type(self, new_type: str) -> None:
        """Change the type, to a known one or not; the operator runs as before."""
        self._operator.type = new_type

    def set_attr(self, name: str, val: Any) -> None:
        self._operator._set_attr(name, val)

    _update_desc_attr = set_attr


class IrGraph:
    """Operators and variables of the first block of a program (`fluid.framework.IrGraph`).

    Args:
        graph: `core.Graph(program.desc)`; the program itself is not changed.
        for_test: the value of `is_test`.
    """

    def __init__(self, graph: Graph, for_test: bool = False) -> None:
        if not isinstance(graph, Graph):
            raise AssertionError(f"graph must be a core.Graph, got {type(graph).__name__}")
        self.graph = graph
        graph._nodes = self
        self._program = graph._program
        self._for_test = for_test
        self._nodes: dict[int, IrNode] = {}
        latest: dict[str, IrVarNode] = {}
        for operator in self._block.ops:
            self._add_operator(operator, latest)

    @property
    def _block(self) -> Block:
        return self._program.global_block()

    def _add(self, node: Any) -> Any:
        self._nodes[node.id()] = node
        return node

    def _add_operator(self, operator: Operator, latest: dict[str, IrVarNode]) -> None:
        op = self._add(IrOpNode(operator))
        for name in dict.fromkeys(operator.input_arg_names):
            if name not in latest:
                var = self._block._find_var_recursive(name)
                if var is None:
                    continue
                latest[name] = self._add(IrVarNode(var, name))
            self.link_to(latest[name], op)
        for name in dict.fromkeys(operator.output_arg_names):
            var = self._block._find_var_recursive(name)
            if var is not None:
                latest[name] = self._add(IrVarNode(var, name))
                self.link_to(op, latest[name])

    def clone(self) -> IrGraph:
        """A copy with nodes of its own."""
        return IrGraph(Graph(self.to_program().desc), self._for_test)

    def is_test(self) -> bool:
        return self._for_test

    def all_nodes(self) -> set[IrNode]:
        return set(self._nodes.values())

    def all_var_nodes(self) -> list[IrVarNode]:
        return [node for node in self._nodes.values() if isinstance(node, IrVarNode)]

    def all_op_nodes(self) -> list[IrOpNode]:
        return [node for node in self._nodes.values() if isinstance(node, IrOpNode)]

    def all_persistable_nodes(self) -> list[IrVarNode]:
        return [node for node in self.all_var_nodes() if not node.is_ctrl_var() and node.persistable()]

    def create_persistable_node(
        self, name: str, var_type: VarType, shape: Sequence[int], var_dtype: VarType
    ) -> IrVarNode:
        """A node of a new persistable variable."""
        return self._create(name, var_type, shape, var_dtype, True)

    def create_var_node(
        self, name: str, var_type: VarType, shape: Sequence[int], var_dtype: VarType
    ) -> IrVarNode:
        """A node of a new variable."""
        return self._create(name, var_type, shape, var_dtype, False)

    def _create(
        self, name: str, var_type: VarType, shape: Sequence[int], var_dtype: VarType, persistable: bool
    ) -> IrVarNode:
        var = Variable(
            self._block,
            name=name,
            type=VarType(var_type),
            shape=list(shape),
            dtype=var_dtype,
            persistable=persistable,
        )
        self._block.vars[name] = var
        node: IrVarNode = self._add(IrVarNode(var, name))
        return node

    def create_control_dep_var(self) -> IrVarNode:
        """Create a control dependency, a variable without data between two operators."""
        node: IrVarNode = self._add(IrVarNode(None, f"__control_var@{len(self._nodes)}"))
        return node

    def create_var_node_from_desc(self, var_desc: VarDesc) -> IrVarNode:
        """Another node of the variable that `var_desc` shows: a later value of it."""
        node: IrVarNode = self._add(IrVarNode(var_desc._shown, var_desc._shown.name))
        return node

    def create_op_node(
        self,
        op_type: str,
        attrs: Mapping[str, Any],
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
    ) -> IrOpNode:
        """A node of a new operator; `inputs` and `outputs`: slot -> node or nodes. `link_to` links it."""
        operator = Operator(self._block, op_type, _names(inputs), _names(outputs), dict(attrs))
        node: IrOpNode = self._add(IrOpNode(operator))
        return node

    def create_op_node_from_desc(self, op_desc: OpDesc) -> IrOpNode:
        """A node of an operator like the one that `op_desc` shows."""
        node: IrOpNode = self._add(IrOpNode(copy_op(op_desc._shown, self._block, False)))
        return node

    def update_input_link(
        self, old_input_node: IrVarNode, new_input_node: IrVarNode, op_node: IrOpNode
    ) -> None:
        """Let `op_node` read `new_input_node` instead of `old_input_node`."""
        self._check(old_input_node, new_input_node, op_node)
        old_input_node.remove_output(op_node)
        op_node.remove_input(old_input_node)
        self.link_to(new_input_node, op_node)
        op_node.rename_input(old_input_node.name(), new_input_node.name())

    def update_output_link(
        self, old_output_node: IrVarNode, new_output_node: IrVarNode, op_node: IrOpNode
    ) -> None:
        """Let `op_node` write `new_output_node` instead of `old_output_node`."""
        self._check(old_output_node, new_output_node, op_node)
        old_output_node.remove_input(op_node)
        op_node.remove_output(old_output_node)
        self.link_to(op_node, new_output_node)
        op_node.rename_output(old_output_node.name(), new_output_node.name())

    def _check(self, *nodes: IrNode) -> None:
        for node in nodes:
            if node.id() not in self._nodes:
                raise AssertionError(f"the node {node.name()} is not in this graph")

    def link_to(self, node_in: IrNode, node_out: IrNode) -> None:
        """Make an arrow from `node_in` to `node_out`."""
        self._check(node_in, node_out)
        node_in.append_output(node_out)
        node_out.append_input(node_in)

    def safe_remove_nodes(self, remove_nodes: Any) -> None:
        """Take nodes, one or several, out of the graph, with their arrows."""
        nodes = {remove_nodes} if isinstance(remove_nodes, IrNode) else set(remove_nodes)
        for node in nodes:
            for other in node.inputs:
                other.remove_output(node)
            for other in node.outputs:
                other.remove_input(node)
            self._nodes.pop(node.id(), None)

    def resolve_hazard(self) -> None:
        """Does nothing: operators that read a variable always come before those that overwrite it."""

    def _before(self) -> dict[int, dict[int, IrOpNode]]:
        """The predecessors of each operator."""
        before: dict[int, dict[int, IrOpNode]] = {op.id(): {} for op in self.all_op_nodes()}
        versions: dict[str, list[IrVarNode]] = {}
        for var in self.all_var_nodes():
            versions.setdefault(var.name(), []).append(var)
            for maker in var.inputs:
                for reader in var.outputs:
                    before[reader.id()][maker.id()] = maker
        for nodes in versions.values():
            for earlier, later in itertools.pairwise(nodes):
                for reader in earlier.outputs:
                    for maker in later.inputs:
                        if maker is not reader:
                            before[maker.id()][reader.id()] = reader
        return before

    def topology_sort(self) -> list[IrOpNode]:
        """The operators in topological order, stably sorted; ValueError if there is a cycle."""
        before, done, order = self._before(), set[int](), list[IrOpNode]()
        for op in self.all_op_nodes():
            path, waiting = [op], {op.id()}
            while path:
                last = path[-1]
                missing = [first for key, first in before[last.id()].items() if key not in done]
                if last.id() in done:
                    path.pop()
                elif not missing:
                    done.add(last.id())
                    order.append(last)
                    waiting.discard(last.id())
                    path.pop()
                elif missing[0].id() in waiting:
                    raise ValueError(
                        f"operators depend on each other in a circle, {missing[0].name()} among them"
                    )
                else:
                    waiting.add(missing[0].id())
                    path.append(missing[0])
        return order

    def has_circle(self) -> bool:
        try:
            self.topology_sort()
        except ValueError:
            return True
        return False

    def graph_num(self) -> int:
        """The number of connected components."""
        left, count = dict(self._nodes), 0
        while left:
            count += 1
            pending = [left.popitem()[1]]
            while pending:
                node = pending.pop()
                pending += [other for other in (*node.inputs, *node.outputs) if left.pop(other.id(), None)]
        return count

    def build_adjacency_list(self) -> dict[IrOpNode, set[IrOpNode]]:
        """The dependencies of each operator."""
        before = self._before()
        return {op: set(before[op.id()].values()) for op in self.all_op_nodes()}

    def draw(
        self,
        save_path: str,
        name: str,
        marked_nodes: Iterable[IrNode] | None = None,
        remove_ctr_var: bool = True,
    ) -> None:
        """Write the graph as `name`.dot in the folder `save_path`; `marked_nodes` get a colour."""
        marked = {node.id() for node in marked_nodes or ()}
        shown = [node for node in self._nodes.values() if not (remove_ctr_var and node.is_ctrl_var())]
        lines = ["digraph G {"]
        for node in shown:
            colour = ' style="filled" fillcolor="yellow"' if node.id() in marked else ""
            shape = "box" if node.is_op() else "ellipse"
            lines.append(f'  n{node.id()} [label="{node.name()}" shape="{shape}"{colour}];')
        known = {node.id() for node in shown}
        for node in shown:
            lines += [f"  n{node.id()} -> n{other.id()};" for other in node.outputs if other.id() in known]
        write_file(os.path.join(save_path, f"{name}.dot"), "\n".join([*lines, "}", ""]))

    def to_program(self) -> Program:
        """The program that the graph shows, its operators in the order of `topology_sort`."""
        program = self._program.clone()
        block = program.global_block()
        used = {node.name() for node in self.all_var_nodes() if not node.is_ctrl_var()}
        for inner in self._program.blocks[1:]:
            used.update(name for op in inner.ops for name in (*op.reads(), *op.writes()))
        for name in [name for name in block.vars if name not in used]:
            del block.vars[name]
        block.ops = [copy_op(node._operator, block, False) for node in self.topology_sort()]
        program._changed()
        return program

    def _find_node_by_name(self, nodes: Iterable[Any], node_name: str) -> Any:
        """The first of `nodes` with a name; AssertionError if there is none."""
        for node in nodes:
            if node.name() == node_name:
                return node
        raise AssertionError(f"Cannot find the node {node_name} in the giving set.")


def nodes_of(graph: Graph) -> IrGraph:
    """The nodes of a graph as they were taken of it before, or taken now."""
    return graph._nodes or IrGraph(graph)


def _names(slots: Mapping[str, Any]) -> dict[str, list[str]]:
    """Slot -> names, from a node or several for each slot."""
    return {
        slot: [node.name() for node in (given if isinstance(given, (list, tuple, set)) else [given])]
        for slot, given in slots.items()
    }
