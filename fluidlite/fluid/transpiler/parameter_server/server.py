"""The server's program: `listen_and_serv` with one block of updates for each of its parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ....base.dtypes import VarType
from ....framework import Block, Operator, OpRole, Program, Variable
from ....framework.pruning import LR_COUNTER
from .trainer import name_parts, original_name, same_or_split_var

if TYPE_CHECKING:
    from ..distribute_transpiler import DistributeTranspiler

_LIKE_PARAMETER = {
    "adam": ("Moment1", "Moment2"),
    "adagrad": ("Moment",),
    "adamax": ("Moment", "InfNorm"),
    "momentum": ("Velocity",),
    "lars_momentum": ("Velocity",),
    "rmsprop": ("Moment", "MeanSquare", "MeanGrad"),
    "decayed_adagrad": ("Moment",),
    "ftrl": ("SquaredAccumulator", "LinearAccumulator"),
    "sgd": (),
    "dpsgd": (),
}


def is_known(op_type: str) -> bool:
    """True if parameter servers support an optimizer."""
    return op_type in _LIKE_PARAMETER


def kept_shape(op_type: str, slot: str, shape: Sequence[int], part: Sequence[int]) -> tuple[int, ...]:
    """The shape of an optimizer's state in `slot` for a block of shape `part`; `shape`: that for the whole parameter.

    Raises ValueError for optimizers that Fluid's parameter servers do not support.
    """
    if op_type not in _LIKE_PARAMETER:
        raise ValueError(f"Not supported optimizer for distributed training: {op_type}")
    return tuple(part) if slot in _LIKE_PARAMETER[op_type] else tuple(shape)


PARAMETER, GRADIENT, RATE = "Param", "Grad", "LearningRate"


def is_update(op: Operator) -> bool:
    """True if an operator updates a parameter with a learning rate."""
    return PARAMETER in op.inputs and RATE in op.inputs


class ServerProgram:
    """Builds the program of the server at `endpoint`, the attribute `program`."""

    def __init__(self, transpiler: DistributeTranspiler, endpoint: str) -> None:
        self.t = transpiler
        self.endpoint = endpoint
        self.held = transpiler.param_grad_ep_mapping[endpoint]
        self.program = program = Program()
        program.random_seed = transpiler.origin_program.random_seed
        transpiler._mark(program, endpoint)
        self.home = program.global_block()
        barriers = transpiler.sync_mode or transpiler.config.completely_not_async
        self.merges = barriers and transpiler.trainer_num > 1
        self.lr_ops = transpiler._get_lr_ops()
        self.arriving = self._declare_held()
        self.blocks: list[Block] = []
        self.grad_to_block: list[str] = []
        self.sparse: list[str] = []
        rates = self._decay_block()
        parent = len(program.blocks) - 1
        for op in transpiler.optimize_ops:
            if is_update(op) and self._part_of(op.input(PARAMETER)[0]) is not None:
                self._update_block(op, parent)
        lost = [op.type for op in transpiler.optimize_ops if PARAMETER in op.inputs and RATE not in op.inputs]
        if lost:
            # Fluid's servers have no update for these, and never change their parameters.
            raise ValueError(f"Not supported optimizer for distributed training: {lost[0]}")
        program.current_block_idx = 0
        self._listen(-1 if rates is None else rates.idx)

    def _declare_held(self) -> list[Variable]:
        """Declare parameters and gradients; returns the variables that are received."""
        for var in self.held["params"]:
            self._declare(var.name, var, shape=var.shape)
        arriving = []
        trainers = self.t.trainer_num
        for var in self.held["grads"]:
            name = _without_trainer(var.name)
            single = self._declare(name, var, shape=var.shape)
            if not self.merges:
                arriving.append(single)
                continue
            arriving += [
                self._declare(f"{name}.trainer_{k}", var, persistable=False, shape=var.shape)
                for k in range(trainers)
            ]
        if self.t.config.enable_dc_asgd:
            for var in self.held["params"]:
                for k in range(trainers):
                    self._declare(f"{var.name}.trainer_{k}_bak", var, persistable=False, shape=var.shape)
        return arriving

    def _declare(
        self,
        name: str,
        like: Variable,
        persistable: bool = True,
        shape: Any = None,
        block: Block | None = None,
    ) -> Variable:
        return (block or self.home).create_var(
            name=name,
            persistable=persistable,
            dtype=like.dtype,
            type=like.type,
            shape=like.shape if shape is None else shape,
            lod_level=like.lod_level,
        )

    def _part_of(self, parameter: str) -> Variable | None:
        """The block of a parameter that this server holds, or None."""
        return next((var for var in self.held["params"] if same_or_split_var(var.name, parameter)), None)

    def _gradient_of(self, part: Variable) -> Variable:
        """The gradient that is received for a block of a parameter."""
        for param, grad in zip(self.held["params"], self.held["grads"], strict=True):
            if param.name == part.name:
                return grad
        raise KeyError(part.name)

    def _new_block(self, parent: int) -> Block:
        block = self.program._create_block(parent)
        self.blocks.append(block)
        return block

    def _decay_block(self) -> Block | None:
        """The block that computes learning rates, if they change."""
        if not self.lr_ops:
            return None
        block = self._new_block(0)
        for op in self.lr_ops:
            if not self.t.sync_mode and op.type == "increment" and LR_COUNTER in op.output_arg_names:
                counted = [f"{LR_COUNTER}.trainer_{k}" for k in range(self.t.trainer_num)]
                counter = self.t.origin_program.global_block().vars[LR_COUNTER]
                for name in (LR_COUNTER, *counted):
                    self._declare(name, counter)
                block.append_op(
                    type="sum",
                    inputs={"X": counted},
                    outputs={"Out": LR_COUNTER},
                    attrs={"op_role": OpRole.LRSched},
                )
                continue
            self._copy_op(op, block)
        return block

    def _copy_op(self, op: Operator, block: Block) -> None:
        """Copy an operator with its blocks; its variables are declared here as persistable."""
        attrs = dict(op.attrs)
        for name, value in attrs.items():
            if isinstance(value, Block):
                attrs[name] = self._copy_block(value, block)
        for name in (*op.input_arg_names, *op.output_arg_names):
            if block._find_var_recursive(name) is None:
                source = op.block._find_var_recursive(name)
                assert source is not None
                self._declare(name, source)
        block.append_op(type=op.type, inputs=op.inputs, outputs=op.outputs, attrs=attrs)

    def _copy_block(self, source: Block, parent: Block) -> Block:
        block = self.program._create_block(parent.idx)
        for op in source.ops:
            for name in (*op.input_arg_names, *op.output_arg_names):
                var = op.block._find_var_recursive(name)
                if var is not None and name not in block.vars:
                    self._declare(name, var, block=block)
            self._copy_op(op, block)
        return block

    def _update_block(self, update: Operator, parent: int) -> None:
        """Add the block that updates a parameter, or this server's part of it."""
        part = self._part_of(update.input(PARAMETER)[0])
        assert part is not None
        block = self._new_block(parent)
        arriving = self._gradient_of(part)
        merged = self._merge(block, _without_trainer(arriving.name))
        self.grad_to_block.append(f"{merged.name}:{block.idx}")
        if merged.type == VarType.SELECTED_ROWS:
            self.sparse.append(f"{merged.name}:{part.name}")
        parameter, gradient = update.input(PARAMETER)[0], original_name(arriving.name)
        names = {parameter: part.name, gradient: merged.name, arriving.name: merged.name}
        for op in self.t.optimize_ops:
            if op in self.lr_ops or not _belongs(op, parameter):
                continue
            if op is update:
                self._append_update(block, op, part, merged, names)
            else:
                self._append_other(block, op, names)

    def _merge(self, block: Block, name: str) -> Variable:
        """The mean of the trainers' gradients, or the gradient of a single one."""
        merged = self.home.vars[name]
        trainers = self.t.trainer_num
        if self.merges:
            sent = [f"{name}.trainer_{k}" for k in range(trainers)]
            block.append_op(type="sum", inputs={"X": sent}, outputs={"Out": merged}, attrs={})
            block.append_op(
                type="scale",
                inputs={"X": merged},
                outputs={"Out": merged},
                attrs={"scale": 1.0 / trainers},
            )
        return merged

    def _append_update(
        self, block: Block, op: Operator, part: Variable, merged: Variable, names: dict[str, str]
    ) -> None:
        if self.t.config.enable_dc_asgd:
            merged = self._compensated(block, part, merged)
        inputs: dict[str, Any] = {}
        for slot, given in op.inputs.items():
            if not given:
                continue
            if slot in (PARAMETER, GRADIENT):
                decayed = names.get(given[0], merged.name) if slot == GRADIENT else part.name
                inputs[slot] = merged if self.t.config.enable_dc_asgd and slot == GRADIENT else decayed
                continue
            var = self.t.origin_program.global_block().vars[given[0]]
            if slot == RATE:
                inputs[slot] = self.home.vars.get(var.name) or self._declare(var.name, var)
                continue
            shape = kept_shape(op.type, slot, var.shape, part.shape)
            inputs[slot] = names[var.name] = self._declare(var.name, var, shape=shape).name
        outputs = {
            slot: [names.get(name, name) for name in given] for slot, given in op.outputs.items() if given
        }
        block.append_op(type=op.type, inputs=inputs, outputs=outputs, attrs=dict(op.attrs))

    def _append_other(self, block: Block, op: Operator, names: dict[str, str]) -> None:
        """Append another operator on a gradient or parameter: regularization, averages etc."""
        part = self.home.vars[names[op.attrs["op_role_var"][0]]]
        whole = self.t.origin_program.global_block().vars[op.attrs["op_role_var"][0]].shape
        for name in (*op.input_arg_names, *op.output_arg_names):
            if name in names:
                continue
            var = op.block._find_var_recursive(name)
            assert var is not None
            names[name] = name
            if name not in self.home.vars:
                self._declare(name, var, shape=part.shape if tuple(var.shape) == tuple(whole) else var.shape)
        block.append_op(
            type=op.type,
            inputs={slot: [names.get(n, n) for n in given] for slot, given in op.inputs.items() if given},
            outputs={slot: [names.get(n, n) for n in given] for slot, given in op.outputs.items() if given},
            attrs=dict(op.attrs),
        )

    def _compensated(self, block: Block, part: Variable, gradient: Variable) -> Variable:
        """A gradient compensated for other trainers' updates since this trainer's copy of the parameter (DC-ASGD)."""
        trainer = block.create_var(
            name="@TRAINER_ID@", type=VarType.LOD_TENSOR, dtype=VarType.INT64, shape=[1]
        )
        backup = self._declare(f"{part.name}.local_bak", part, persistable=False, block=block)
        copies = [f"{part.name}.trainer_{k}_bak" for k in range(self.t.trainer_num)]
        block.append_op(
            type="ref_by_trainer_id", inputs={"X": copies, "TrainerId": trainer}, outputs={"Out": backup}
        )

        def pair(op_type: str, x: Variable, y: Variable) -> Variable:
            out = block.create_var(
                name=_unique("tmp_dc_output"), type=part.type, shape=part.shape, dtype=part.dtype
            )
            block.append_op(type=op_type, inputs={"X": x, "Y": y}, outputs={"Out": out}, attrs={})
            return out

        moved = pair("elementwise_sub", part, backup)
        square = pair("elementwise_mul", pair("elementwise_mul", moved, gradient), gradient)
        return pair("elementwise_add", gradient, square)

    def _listen(self, decay: int) -> None:
        t = self.t
        self.home.append_op(
            type="listen_and_serv",
            inputs={"X": self.arriving},
            outputs={},
            attrs={
                "optimize_blocks": self.blocks,
                "endpoint": self.endpoint,
                "pserver_id": t.pserver_endpoints.index(self.endpoint),
                "Fanin": t.trainer_num,
                "distributed_mode": t.distributed_mode,
                "grad_to_block_id": self.grad_to_block,
                "sparse_grad_to_param": self.sparse,
                "lr_decay_block_id": decay,
                "rpc_get_thread_num": t.server_config._rpc_get_thread_num,
                "rpc_send_thread_num": t.server_config._rpc_send_thread_num,
                "rpc_prefetch_thread_num": t.server_config._rpc_prefetch_thread_num,
                "dc_asgd": t.config.enable_dc_asgd,
            },
        )


def _unique(key: str) -> str:
    from ....base import unique_name

    return unique_name.generate(key)


def _without_trainer(name: str) -> str:
    whole, block, _ = name_parts(name)
    return f"{whole}.{block}" if block else whole


def _belongs(op: Operator, parameter: str) -> bool:
    roles = op.attrs.get("op_role_var") or ()
    return parameter in roles


def startup_of(t: DistributeTranspiler, endpoint: str, program: Program, source: Program) -> Program:
    """The startup program of the server at `endpoint`."""
    startup = Program()
    startup.random_seed = source.random_seed
    home = startup.global_block()
    held = {var.name for var in t.param_grad_ep_mapping[endpoint]["params"]}
    for var in program.global_block().vars.values():
        home._clone_variable(var)
    for op in source.global_block().ops:
        targets = {name: _here(name, held, home) for name in op.output_arg_names}
        names = {name: new for name, new in targets.items() if new is not None}
        if not names or op.type in ("recv", "fetch_barrier", "concat", "fake_init"):
            continue
        attrs = dict(op.attrs)
        if op.type in ("gaussian_random", "fill_constant", "uniform_random", "truncated_gaussian_random"):
            attrs["shape"] = list(home.vars[next(iter(names.values()))].shape)
        elif op.type == "assign_value":
            attrs |= _own_values(t, op, home.vars[next(iter(names.values()))])
        home.append_op(
            type=op.type,
            inputs={slot: given for slot, given in op.inputs.items() if given},
            outputs={slot: [names.get(name, name) for name in given] for slot, given in op.outputs.items()},
            attrs=attrs,
        )
    if t.config.enable_dc_asgd:
        for var in t.param_grad_ep_mapping[endpoint]["params"]:
            for trainer in range(t.trainer_num):
                backup = f"{var.name}.trainer_{trainer}_bak"
                home.append_op(type="assign", inputs={"X": var.name}, outputs={"Out": backup})
    return startup


def _own_values(t: DistributeTranspiler, op: Operator, part: Variable) -> dict[str, Any]:
    """The attributes of `assign_value` for a part of its result: the values of the part's rows."""
    whole, block, _ = name_parts(part.name)
    if not block:
        return {}
    number = int(block.removeprefix("block"))
    parts = (var for side in t.param_grad_ep_mapping.values() for var in side["params"])
    before = {f"{whole}.block{k}" for k in range(number)}
    width = math.prod(part.shape[1:])
    first = width * sum({var.name: var.shape[0] for var in parts if var.name in before}.values())
    attrs: dict[str, Any] = {"shape": list(part.shape)}
    for name in ("fp32_values", "int32_values", "int64_values", "bool_values"):
        if values := op.attrs.get(name):
            attrs[name] = list(values[first : first + part.shape[0] * width])
    return attrs


def _here(name: str, held: Iterable[str], home: Block) -> str | None:
    """The server's variable for `name`, whole or in part."""
    if name in home.vars:
        return name
    return next((part for part in held if same_or_split_var(part, name)), None)
