"""`Block`: a list of operators and the variables they work on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ..base import unique_name
from . import mode, sequences, tracing, verify
from .common_attrs import OpRole
from .mode import _dygraph_tracer
from .operator import Operator
from .variable import Parameter, Variable

if TYPE_CHECKING:
    from .program import Program
    from .serialization.descs import BlockDesc


class Block:
    """A sequence of operators with its variables; sub-blocks see those of their parents (`fluid.framework.Block`)."""

    def __init__(self, program: Program, idx: int, parent_idx: int = -1) -> None:
        self.program = program
        self.idx = idx
        self.parent_idx = parent_idx
        self.forward_block_idx = -1
        self.vars: OrderedDict[str, Variable] = OrderedDict()
        self._ops: list[Operator] = []
        self._first: list[Operator] = []  # operators inserted before those, the last one first

    @property
    def ops(self) -> list[Operator]:
        """The operators, in the order in which they run."""
        if self._first:
            self._ops[:0] = self._first[::-1]
            self._first.clear()
        return self._ops

    @ops.setter
    def ops(self, ops: list[Operator]) -> None:
        self._ops = ops
        self._first.clear()

    def var(self, name: str) -> Variable:
        """The variable `name` of this block itself; ValueError if there is none, TypeError if `name` is no string."""
        if not isinstance(name, str):
            raise TypeError(f"var takes the name of a variable, got {name!r} of type {type(name).__name__}")
        result = self.vars.get(name)
        if result is None:
            raise ValueError(f"var {name} not in this block{verify.suggest(name, self.vars)}")
        return result

    def has_var(self, name: str) -> bool:
        return name in self.vars

    def walk(self) -> list[Block]:
        """This block and all nested ones, each once."""
        result, known = [self], {self.idx}
        for block in result:
            inner = {sub.idx: sub for op in block.ops for sub in op.sub_blocks() if sub.idx not in known}
            known.update(inner)
            result += inner.values()
        return result

    def _find_var_recursive(self, name: str) -> Variable | None:
        result = self.vars.get(name)
        if result is None and self.forward_block_idx >= 0:
            result = self.program.blocks[self.forward_block_idx].vars.get(name)
        if result is None and self.parent_idx >= 0:
            return self.program.blocks[self.parent_idx]._find_var_recursive(name)
        return result

    def _new_name(self, key: str) -> str:
        """A name `key_N` for a new variable: one that no variable has that this block sees. Where names count anew
        (`unique_name.guard`), or a program was loaded, numbers that come next may be in use.
        """
        name = unique_name.generate(key)
        while self._find_var_recursive(name) is not None:
            name = unique_name.generate(key)
        return name

    def _is_persistable(self, name: str) -> bool:
        """Whether a variable of this block, or of one around it, outlives the step."""
        var = self._find_var_recursive(name)
        return var is not None and var.persistable

    def _var_recursive(self, name: str) -> Variable:
        """The variable `name` of this block or of one around it; ValueError if there is none."""
        result = self._find_var_recursive(name)
        if result is None:
            raise ValueError(
                f"var {name} is not in block {self.idx} nor in one around it{verify.suggest(name, self.vars)}"
            )
        return result

    def create_var(self, *args: Any, **kwargs: Any) -> Variable:
        """A new Variable of this block; see `Variable` for the arguments.

        It replaces one of the same name, and takes from it what no argument gives. Raises ValueError for a shape,
        type, element type, `lod_level` or `persistable` that differs.

        In dygraph mode it is an eager tensor without elements, which is not added to this block, as in Fluid.
        """
        if (running := self._running()) is not None:
            return running.variable(**kwargs)  # type: ignore[no-any-return]
        var = Variable(self, *args, **kwargs)
        if (known := self.vars.get(var.name)) is not None:
            var._take_over(known, kwargs)
        self.vars[var.name] = var
        self.program._changed()
        return var

    def create_parameter(self, *args: Any, **kwargs: Any) -> Parameter:
        """A new Parameter of the global block; `initializer=` appends what fills it to this block.

        Raises ValueError if a parameter of that name exists with another shape.
        """
        if self.program._tracer is not None and kwargs.get("origin") is None:
            raise self.program._tracer.makes_parameter(kwargs.get("name"))
        initializer = kwargs.pop("initializer", None)
        home = self.program.global_block()
        known = home.vars.get(kwargs.get("name") or "")
        if isinstance(known, Parameter):
            param: Parameter = known
            shape = tuple(kwargs.get("shape", args[0] if args else known.shape))
            if known.shape != shape:
                raise ValueError(
                    f"parameter {known.name!r} exists with shape {list(known.shape)} and cannot be shared with "
                    f"shape {list(shape)}; give it another name"
                )
        else:
            param = Parameter(home, *args, **kwargs)
            home.vars[param.name] = param
        if initializer is not None:
            filled = known is not None and known.op is not None and known.op.block is self
            if not filled:
                initializer(param, self)
        self.program._changed()
        return param

    def iter_parameters(self) -> Iterator[Parameter]:
        return (var for var in self.vars.values() if isinstance(var, Parameter))

    def all_parameters(self) -> list[Parameter]:
        return list(self.iter_parameters())

    def append_op(self, *args: Any, **kwargs: Any) -> Operator:
        """Append an operator: `type`, `inputs` and `outputs` (slot -> variables or names), `attrs`.

        In dygraph mode it runs at once on eager tensors, the block stays as it is, and the operator returned knows no
        more than its `type`, as in Fluid. Raises an error that names the operator, its variables and the user's line if
        they do not fit.
        """
        return self._add(self._ops.append, *args, **kwargs)

    def _prepend_op(self, *args: Any, **kwargs: Any) -> Operator:
        return self._add(self._first.append, *args, **kwargs)

    def _insert_op(self, index: int, *args: Any, **kwargs: Any) -> Operator:
        return self._add(partial(self.ops.insert, index), *args, **kwargs)

    def _add(
        self,
        put: Callable[[Operator], None],
        type: str,
        inputs: dict[str, Any] | None = None,
        outputs: dict[str, Any] | None = None,
        attrs: dict[str, Any] | None = None,
        stop_gradient: bool = False,
    ) -> Operator:
        if (running := self._running()) is not None and _any_eager(inputs, outputs):
            running.trace_op(type, _lists(inputs), _lists(outputs), attrs, stop_gradient)
            ran = Operator.blank(self)
            ran.type = type
            return ran
        op = Operator(self, type, inputs, outputs, attrs)
        self.program._stamp(op)
        verify.operator(op)
        sequences.carry_over(op)
        put(op)
        for name in op.writes():
            var = self.vars.get(name)
            if var is None:
                var = self._find_var_recursive(name)
            if var is not None:
                var.op = op
                if stop_gradient:
                    var.stop_gradient = True
        self.program._changed()
        if self.program._tracer is not None:
            self.program._tracer.appended(op)
        return op

    def _running(self) -> Any:
        """The tracer that runs operators at once in dygraph mode; None where they are appended.

        Only the default main program outside of `program_guard` runs them; other programs are built in any mode.
        """
        tracer = _dygraph_tracer()
        if tracer is None:
            return None
        mine = self.program._is_main() and not mode.is_building()
        return tracer if mine and tracing.current() is None else None

    def _insert_blank(self, index: int) -> Operator:
        """Insert an operator without type and variables at `index`."""
        op = Operator.blank(self)
        self.ops.insert(index, op)
        self.program._changed()
        return op

    def _slice_ops(self, start: int, end: int) -> list[Operator]:
        return self.ops[start:end]

    def _remove_op(self, index: int) -> None:
        gone = self.ops.pop(index)
        for name in gone.output_arg_names:
            var = self._find_var_recursive(name)
            if var is not None and var.op is gone:
                var.op = next((op for op in reversed(self.ops) if name in op.output_arg_names), None)
        self.program._changed()

    def _remove_var(self, name: str) -> None:
        del self.vars[name]
        self.program._changed()

    def _rename_var(self, name: str, new_name: str) -> Variable:
        """Rename a variable of this block, in its operators as well."""
        var = self.var(name)
        if new_name in self.vars:
            raise ValueError(f"cannot rename variable {name!r}: {new_name!r} exists")
        self.vars = OrderedDict((new_name if key == name else key, value) for key, value in self.vars.items())
        var.name = new_name
        for op in self.ops:
            op._rename_input(name, new_name)
            op._rename_output(name, new_name)
        return var

    def _clone_variable(self, var: Variable, force_persistable: bool = True) -> Variable:
        """A variable here with the name, shape and dtype of `var` of another program."""
        return self.create_var(
            name=var.name, shape=var.shape, dtype=var.dtype, type=var.type, lod_level=var.lod_level,
            persistable=True if force_persistable else var.persistable, is_data=var.is_data,
            need_check_feed=var.need_check_feed,
        )  # fmt: skip

    @property
    def desc(self) -> BlockDesc:
        """This block in the form of Fluid's native module."""
        from .serialization.descs import BlockDesc

        return BlockDesc(self)

    @property
    def backward_block_idx(self) -> int:
        """The index of the block that computes the gradients of this one; -1 if there is none."""
        return next((b.idx for b in self.program.blocks if b.forward_block_idx == self.idx), -1)

    def _set_forward_block_idx(self, idx: int) -> None:
        self.forward_block_idx = idx

    def _copy_param_info_from(self, other: Block) -> None:
        """Make parameters of the variables that are parameters of `other`, a block of another program."""
        for param in other.iter_parameters():
            known = self.vars.get(param.name)
            if known is not None:
                copy = param._copied_to(self)
                copy.op = known.op
                self.vars[param.name] = copy
        self.program._changed()

    def _sync_with_cpp(self) -> None:
        """No effect: `desc` is a view of this block."""

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """The block as text, in the form of a saved program."""
        from .serialization import proto

        return proto.block_text(self, with_details)

    def __repr__(self) -> str:
        return self.to_string()

    __str__ = __repr__


__all__ = ["Block", "OpRole"]


def _lists(slots: dict[str, Any] | None) -> dict[str, list[Any]]:
    return {
        slot: list(held) if isinstance(held, (list, tuple)) else [held]
        for slot, held in (slots or {}).items()
        if held is not None
    }


def _any_eager(*slots: dict[str, Any] | None) -> bool:
    return any(
        hasattr(type(item), "stands_for") for some in slots for held in _lists(some).values() for item in held
    )
