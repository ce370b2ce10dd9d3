"""`Program`, which Fluid code builds and executors run; the default programs and the guards that switch them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from ..base.context import Slot
from ..ops.program.host import READING
from . import mode
from .block import Block
from .common_attrs import OpRole, _full_name_scope, current_device
from .operator import COPY, Operator
from .pruning import needed_ops, touched, without_training
from .tracing import Tracer
from .variable import Parameter, Variable

if TYPE_CHECKING:
    from .serialization.descs import ProgramDesc

T = TypeVar("T")


def _read_ops(program: Program) -> list[Operator]:
    return [op for op in program.global_block().ops if op.type == "read"]


def _names_of(target: Any) -> list[str]:
    """The variable names of a target of pruning: a Variable, a name, or an Operator that writes them."""
    if isinstance(target, Operator):
        return target.output_arg_names
    if isinstance(target, (str, Variable)):
        return [target if isinstance(target, str) else target.name]
    raise ValueError(f"a program is pruned to Variables, names or Operators, got {type(target).__name__}")


class Program:
    """Blocks of operators and variables; block 0 is the global one (`fluid.Program`).

    Example:
        >>> import paddle.fluid as fluid
        >>> program = fluid.Program()
        >>> program.random_seed = 1
    """

    # Set for distributed programs, by `fluid/transpiler/distribute_transpiler.py` and others.
    _is_distributed = False
    _is_chief = False
    _parameters_on_pservers: Any = None
    _endpoints: Sequence[str] = ()
    _ps_endpoint: str | None = None
    _distributed_lookup_table: str | None = None
    _fleet_opt: dict[str, Any] | None = None

    def __init__(self) -> None:
        self.blocks: list[Block] = [Block(self, 0)]
        self.current_block_idx = 0
        self._seed: int = getattr(sys.modules[__package__], "global_prog_seed", 0)
        self._version = 0
        self._op_role = OpRole.Forward
        self._op_role_vars: list[str] = []
        self._appending_grad_times = 0
        self._pruned: dict[Any, Program] = {}
        self._plans: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # executors' plans, by scope
        self._analyses: tuple[int, dict[Any, Any]] = (-1, {})  # of one version; see `_derived`
        self._tracer: Tracer | None = None

    def _changed(self) -> None:
        """Invalidate the plans made for this program."""
        self._version += 1

    def _derived(self, analysis: Callable[[Program], T]) -> T:
        """The result of `analysis(self)`, which is computed once for each version of the program."""
        version, results = self._analyses
        if version != self._version:
            results = {}
            self._analyses = self._version, results
        if analysis not in results:
            results[analysis] = analysis(self)
        return results[analysis]  # type: ignore[no-any-return]

    def _stamp(self, op: Operator) -> None:
        """Mark a new operator with the part of training that is being built."""
        op.attrs.setdefault("op_role", self._op_role)
        if self._op_role_vars:
            op.attrs.setdefault("op_role_var", list(self._op_role_vars))
        scope = _full_name_scope()
        if scope != "/":
            op.attrs.setdefault("op_namescope", scope)
        device = current_device()
        if device:
            op.attrs.setdefault("op_device", device)

    def _reader_ops(self) -> list[Operator]:
        """The `read` operators of the global block."""
        return self._derived(_read_ops)

    def _has_readers(self) -> bool:
        return bool(self._reader_ops())

    @property
    def random_seed(self) -> int:
        """The seed of random operators that have none of their own; 0 draws a new one each run."""
        return self._seed

    @random_seed.setter
    def random_seed(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise ValueError(f"Seed must be a integer, got {seed!r}")  # noqa: TRY004 - as Fluid
        self._seed = seed

    def global_seed(self, seed: int = 0) -> None:
        """Set the seed of this program and of all that are made from now on."""
        self.random_seed = seed
        sys.modules[__package__].global_prog_seed = seed  # type: ignore[attr-defined]

    @property
    def num_blocks(self) -> int:
        return len(self.blocks)

    def global_block(self) -> Block:
        return self.blocks[0]

    def block(self, index: int) -> Block:
        return self.blocks[index]

    def _is_main(self) -> bool:
        """True for the default main program."""
        return self is _main.get()

    def current_block(self) -> Block:
        return self.blocks[self.current_block_idx]

    def _create_block(self, parent_idx: int | None = None) -> Block:
        parent = self.current_block_idx if parent_idx is None else parent_idx
        block = Block(self, len(self.blocks), parent)
        self.blocks.append(block)
        self.current_block_idx = block.idx
        return block

    def _rollback(self) -> None:
        self.current_block_idx = self.current_block().parent_idx

    def list_vars(self) -> Iterator[Variable]:
        """All variables of all blocks."""
        for block in self.blocks:
            yield from block.vars.values()

    def all_parameters(self) -> list[Parameter]:
        """The parameters of all blocks."""
        return [var for var in self.list_vars() if isinstance(var, Parameter)]

    def clone(self, for_test: bool = False) -> Program:
        """A copy; with `for_test` without operators of training (`without_training`), and with `is_test` set.

        Loaders are not copied: give the clone feeds or a loader of its own.
        """
        copy = Program()
        copy._seed = self._seed
        copy.blocks = [Block(copy, block.idx, block.parent_idx) for block in self.blocks]
        kept = without_training(self.blocks) if for_test else [block.ops for block in self.blocks]
        for mine, theirs, ops in zip(self.blocks, copy.blocks, kept, strict=True):
            theirs.forward_block_idx = mine.forward_block_idx
            unused = touched(mine.ops) - touched(ops) if len(ops) < len(mine.ops) else set[str]()
            for name, var in mine.vars.items():
                if name not in unused:
                    theirs.vars[name] = var._copied_to(theirs)
            theirs.ops = [copy_op(op, theirs, for_test) for op in ops]
        if for_test:
            copy._drop_blocks()
        return copy

    def _drop_blocks(self) -> None:
        """Remove blocks that no operator runs, such as those of gradients, and copies for them; renumber the rest."""
        found = self.blocks[0].walk()
        used = {block.idx for block in found}
        self._drop_copies(found)
        if len(used) == len(self.blocks):
            return
        self.blocks = [block for block in self.blocks if block.idx in used]
        numbers = {block.idx: number for number, block in enumerate(self.blocks)}
        for block in self.blocks:
            block.idx = numbers[block.idx]
            block.parent_idx = numbers.get(block.parent_idx, -1)
            block.forward_block_idx = numbers.get(block.forward_block_idx, -1)
        self._changed()

    def _drop_copies(self, blocks: list[Block]) -> None:
        """Remove copies of overwritten variables (`Versions`) that no operator of these blocks reads."""
        copies = {name for block in blocks for name in block.vars if COPY in name}
        if not copies:
            return
        unused = copies.difference(
            name for block in blocks for op in block.ops for name in op.input_arg_names
        )
        for block in blocks:
            block.ops = [op for op in block.ops if unused.isdisjoint(op.output_arg_names)]
            for name in unused.intersection(block.vars):
                del block.vars[name]
        self._changed()

    def _prune_with_input(self, feeded_var_names: Sequence[str], targets: Any) -> Program:
        """A copy pruned to the operators that compute `targets` from the named feeds.

        Raises ValueError for a feed that is no name, and as `_prune`.
        """
        names = [feeded_var_names] if isinstance(feeded_var_names, str) else list(feeded_var_names)
        for name in names:
            if not isinstance(name, str):
                raise ValueError(f"feeded_var_names must be names (str), got {type(name).__name__}")
        return self._prune(targets, names)

    def _inference_optimize(self, prune_read_op: bool = True) -> Program:
        """A copy with `is_test` set; without operators that read from loaders if `prune_read_op`."""
        copy = self.clone()
        for op in (op for block in copy.blocks for op in block.ops if "is_test" in op.definition.attrs):
            op.attrs["is_test"] = True
        if prune_read_op:
            block = copy.global_block()
            block.ops = [op for op in block.ops if op.type not in READING]
        copy._changed()
        return copy

    @property
    def _op_role_var(self) -> list[str]:
        """The parameter and gradient of the update that operators are being built for."""
        return self._op_role_vars

    def _part(self, names: tuple[str, ...], feeds: tuple[str, ...], updates: frozenset[Operator]) -> Program:
        """The program of the operators that `names` and `updates` (none: all updates of optimizers) need; cached.

        `updates`: operators of this program, or of one that it was cloned from.
        """
        key = (self._version, names, feeds, updates)
        result = self._pruned.get(key)
        if result is None:
            ops = [op for block in self.blocks for op in block.ops]
            asked = {(op.type, *op.reads(), *op.writes()) for op in updates}
            kept = {op for op in ops if (op.type, *op.reads(), *op.writes()) in asked}
            kept = kept or {op for op in ops if op._is_optimize_op()}
            result = self._pruned[key] = self._prune(list(names), list(feeds), kept)
        return result

    def _prune(
        self, targets: Any, feeds: Sequence[str] = (), updates: AbstractSet[Operator] = frozenset()
    ) -> Program:
        """A copy with only what is needed to compute `targets` from `feeds` and persistables, and for `updates`.

        `targets`: a Variable, its name or an Operator, or several. `updates`: operators of this program that are kept.
        Other updates are left out: parameters and accumulators among the targets have the values that they have.

        Raises ValueError for any other target, and for a name that is not declared.
        """
        listed = targets if isinstance(targets, (list, tuple, set)) else [targets]
        chosen = updates | {target for target in listed if isinstance(target, Operator)}
        targets = [name for target in listed for name in _names_of(target)]
        for name in targets:
            if name not in self.global_block().vars:
                raise ValueError(f"a program is pruned to {name!r}, which its global block does not declare")
        copy = self.clone()
        block = copy.global_block()
        asked = [
            not chosen.isdisjoint([op, *(inner for sub in op.sub_blocks() for inner in sub.ops)])
            for op in self.global_block().ops
        ]
        block.ops = needed_ops(block, asked, targets, feeds, bool(updates))
        copy._drop_blocks()
        used = touched(block.ops) | {*targets, *feeds}
        for name in [name for name in block.vars if name not in used]:
            del block.vars[name]
        copy._changed()
        return copy

    @contextmanager
    def _optimized_guard(self, param_and_grads: list[Any]) -> Iterator[None]:
        """Operators built inside belong to the optimizer's update of the given parameter and gradient."""
        names = [v.name if isinstance(v, Variable) else v for v in param_and_grads]
        with self._role(OpRole.Optimize, names):
            yield

    @contextmanager
    def _backward_role_guard(self) -> Iterator[None]:
        with self._role(OpRole.Backward, []):
            yield

    @contextmanager
    def _gradients_guard(self) -> Iterator[None]:
        """Operators built inside go where the gradients are: of a branch, to the block that has those of the branch.

        Raises ValueError if a branch has none.
        """
        block = self.current_block()
        if block.parent_idx >= 0:
            if block.backward_block_idx < 0:
                raise ValueError(
                    "updates inside of a block need gradients that were computed there: call minimize, or backward and "
                    "apply_gradients, in the same branch"
                )
            self.current_block_idx = block.backward_block_idx
        try:
            yield
        finally:
            self.current_block_idx = block.idx

    @contextmanager
    def _lr_schedule_guard(self, is_with_opt: bool = False) -> Iterator[None]:
        with self._role(OpRole.LRSched | (OpRole.Optimize if is_with_opt else 0), []):
            yield

    @contextmanager
    def _role(self, role: int, names: list[str]) -> Iterator[None]:
        before = self._op_role, self._op_role_vars
        self._op_role, self._op_role_vars = role, names
        try:
            yield
        finally:
            self._op_role, self._op_role_vars = before

    @property
    def desc(self) -> ProgramDesc:
        """This program in the form of Fluid's native module: `desc.serialize_to_string()`."""
        from .serialization.descs import ProgramDesc

        return ProgramDesc(self)

    def _get_desc(self) -> ProgramDesc:
        return self.desc

    @staticmethod
    def _construct_from_desc(desc: ProgramDesc) -> Program:
        """The program that `desc` shows."""
        return desc._shown

    def _take_blocks(self, other: Program) -> None:
        """Take over the blocks of `other`, which loses them."""
        self.blocks, other.blocks = other.blocks, [Block(other, 0)]
        self.current_block_idx = 0
        for block in self.blocks:
            block.program = self
        self._changed()

    def _sync_with_cpp(self) -> None:
        """No effect: `desc` is a view of this program."""

    def _copy_param_info_from(self, other: Program) -> None:
        """Make those variables of the global block parameters that are so in `other`, with their attributes."""
        self.global_block()._copy_param_info_from(other.global_block())

    def _copy_dist_param_info_from(self, other: Program) -> None:
        """Copy the attributes of distributed programs from `other`."""
        for name in (
            "_is_distributed",
            "_is_chief",
            "_parameters_on_pservers",
            "_endpoints",
            "_ps_endpoint",
            "_distributed_lookup_table",
        ):
            setattr(self, name, getattr(other, name))

    def _copy_data_info_from(
        self, other: Program, pruned_origin_block_id_map: dict[int, int] | None = None
    ) -> None:
        """Copy the marks of feeds and `stop_gradient` from `other`; blocks are matched by number, or by the map."""
        origins = pruned_origin_block_id_map or {index: index for index in range(len(self.blocks))}
        for block in self.blocks:
            for name, var in other.block(origins[block.idx]).vars.items():
                mine = block.vars.get(name)
                if mine is not None:
                    mine.is_data, mine.need_check_feed = var.is_data, var.need_check_feed
                    mine.stop_gradient = var.stop_gradient
        self._changed()

    @staticmethod
    def parse_from_string(binary_str: bytes) -> Program:
        """The program that `desc.serialize_to_string()` wrote."""
        from .serialization import proto

        return proto.parse_program(binary_str)

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """The program as text."""
        from .serialization import proto

        return proto.program_text(self, with_details)

    def __repr__(self) -> str:
        return self.to_string()

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """The program as a graph, in a cell of a notebook."""
        from .drawing import in_notebook

        return in_notebook(self)


def _own_blocks(value: Any, program: Program) -> Any:
    """The value of an attribute in a copy, `program`: blocks are replaced by those of the copy."""
    if isinstance(value, Block):
        return program.blocks[value.idx]
    if isinstance(value, list) and value and isinstance(value[0], Block):
        return [program.blocks[block.idx] for block in value]
    return value


def copy_op(op: Operator, block: Block, for_test: bool) -> Operator:
    copy: Operator = Operator.__new__(Operator)
    copy.block = block
    copy.type = op.type
    copy.definition = op.definition
    copy.inputs = {slot: list(names) for slot, names in op.inputs.items()}
    copy.outputs = {slot: list(names) for slot, names in op.outputs.items()}
    copy.attrs = {name: _own_blocks(value, block.program) for name, value in op.attrs.items()}
    copy.line = op.line
    if for_test and "is_test" in op.definition.attrs:
        copy.attrs["is_test"] = True
    for name in copy.output_arg_names:
        var = block._find_var_recursive(name)
        if var is not None:
            var.op = copy
    return copy


_main: Slot[Program] = Slot("main_program", Program())
_startup: Slot[Program] = Slot("startup_program", Program())


def default_main_program() -> Program:
    """The program that layers append to (`fluid.default_main_program`).

    Returns:
        A Program: that of the innermost `program_guard`, else one that the process begins with.

    Example:
        >>> import paddle.fluid as fluid
        >>> fluid.default_main_program().random_seed = 1
    """
    return _main.get()


def default_startup_program() -> Program:
    """The program that initialises parameters (`fluid.default_startup_program`). Run it once, before the main program.

    Returns:
        A Program, as `default_main_program` does.

    Example:
        >>> import paddle.fluid as fluid
        >>> _ = fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
    """
    return _startup.get()


def switch_main_program(program: Program) -> Program:
    """Make `program` the main program; returns the one before."""
    before = _main.get()
    _main.set(program)
    return before


def switch_startup_program(program: Program) -> Program:
    """Make `program` the startup program; returns the one before."""
    before = _startup.get()
    _startup.set(program)
    return before


@contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Build `main_program` (and `startup_program`) inside the block (`fluid.program_guard`).

    Args:
        main_program: the Program that layers append to.
        startup_program: the Program for initial values of parameters; by default that of outside.

    Raises:
        TypeError: for anything but Programs.

    Example:
        >>> import paddle.fluid as fluid
        >>> with fluid.program_guard(fluid.Program(), fluid.Program()):
        ...     y = fluid.layers.fc(fluid.data("x", [None, 3], "float32"), 2)
    """
    for program in (main_program, startup_program):
        if program is not None and not isinstance(program, Program):
            raise TypeError(f"program_guard takes fluid.Program objects, got {type(program).__name__}")
    with mode.building(), _main.hold(main_program):
        if startup_program is None:
            yield
        else:
            with _startup.hold(startup_program):
                yield
