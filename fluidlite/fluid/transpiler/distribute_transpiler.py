"""Transforms the programs of a single machine for trainers and servers (`fluid.transpiler.distribute_transpiler`)."""

from __future__ import annotations

import sys
from collections import OrderedDict
from math import prod
from typing import Any

from ...framework import Operator, OpRole, Program, Variable, default_main_program, default_startup_program
from ..core import programs as _roles
from . import collective
from .details import PSDispatcher, RoundRobin, VarsDistributed, VarStruct, delete_ops, wait_server_ready
from .parameter_server.server import (
    GRADIENT,
    PARAMETER,
    ServerProgram,
    is_known,
    is_update,
    kept_shape,
    startup_of,
)
from .parameter_server.trainer import (
    LOOKUPS,
    counts_steps,
    cut,
    looks_up_on_servers,
    original_name,
    receives_parameters,
    sends_gradients,
    slice_variable,
    sparse_lookups,
    starts_from_servers,
)
from .parameter_server.trainer import VarBlock as VarBlock
from .parameter_server.trainer import same_or_split_var as same_or_split_var

LOOKUP_TABLE_TYPE = list(LOOKUPS)
LOOKUP_TABLE_GRAD_TYPE = [f"{name}_grad" for name in LOOKUPS]
OP_NAME_SCOPE = "op_namescope"
CLIP_OP_NAME_SCOPE = "@CLIP"
OP_ROLE_VAR_ATTR_NAME = _roles.kOpRoleVarAttrName()
RPC_OP_ROLE_ATTR_NAME = op_role_attr_name = _roles.kOpRoleAttrName()
OPT_OP_ROLE_ATTR_VALUE = _roles.OpRole.Optimize
RPC_OP_ROLE_ATTR_VALUE = _roles.OpRole.RPC
DIST_OP_ROLE_ATTR_VALUE = _roles.OpRole.Dist
LR_SCHED_OP_ROLE_ATTR_VALUE = _roles.OpRole.LRSched
PRINT_LOG = False

MIN_BLOCK_SIZE = 8192


def log(*args: Any) -> None:
    """Print if `DistributeTranspilerConfig.print_log` is set (`fluid.transpiler.distribute_transpiler.log`)."""
    if PRINT_LOG:
        print(args)


class DistributedMode:
    """The modes of updates on servers (`fluid.transpiler.distribute_transpiler.DistributedMode`)."""

    SYNC = 0
    ASYNC = 1
    HALF_ASYNC = 2
    GEO = 3


class DistributeTranspilerConfig:
    """Options of `DistributeTranspiler` (`fluid.DistributeTranspilerConfig`).

    slice_var_up: split parameters into blocks, one for each server. min_block_size: the least number of elements of a
    block, at least 8192. split_method: a `PSDispatcher` class; `RoundRobin` if None. sync_mode: servers wait for all
    trainers. runtime_split_send_recv: a communicator sends and receives, for which `sync_mode` has to be false.
    half_async, completely_not_async, geo_sgd_mode, geo_sgd_need_push_nums (steps between two exchanges),
    enable_dc_asgd: see docs/distributed.md. mode: 'pserver', 'nccl2' or 'collective', with `collective_mode`,
    `nccl_comm_num`, `use_hierarchical_allreduce` and `hierarchical_allreduce_inter_nranks` for the latter two.
    wait_port: wait until servers take connections.
    """

    slice_var_up = True
    split_method: type[PSDispatcher] | None = None
    min_block_size = MIN_BLOCK_SIZE
    enable_dc_asgd = False
    mode = "pserver"
    print_log = False
    wait_port = True
    half_async = False
    completely_not_async = False
    geo_sgd_mode = False
    geo_sgd_need_push_nums = 100
    nccl_comm_num = 1
    use_hierarchical_allreduce = False
    hierarchical_allreduce_inter_nranks = 0
    collective_mode: str | None = None
    _runtime_split = False
    _sync = True

    @property
    def runtime_split_send_recv(self) -> bool:
        """True if a communicator splits, sends and receives. Raises ValueError if set while `sync_mode` is true."""
        return self._runtime_split

    @runtime_split_send_recv.setter
    def runtime_split_send_recv(self, value: bool) -> None:
        if value and self._sync:
            raise ValueError(
                "if you want to set runtime_split_send_recv to be true, make ensure config.sync_mode is false at first"
            )
        self._runtime_split = value

    @property
    def sync_mode(self) -> bool:
        """True if servers wait for all trainers. Raises ValueError if set while `runtime_split_send_recv` is true."""
        return self._sync

    @sync_mode.setter
    def sync_mode(self, value: bool) -> None:
        if value and self._runtime_split:
            raise ValueError(
                "if you want to set sync_mode to be true, make ensure config.runtime_split_send_recv is false at first"
            )
        self._sync = value


class ServerRuntimeConfig:
    """A server's threads for each kind of request (`fluid.transpiler.distribute_transpiler.ServerRuntimeConfig`)."""

    def __init__(self) -> None:
        self._rpc_send_thread_num = 12
        self._rpc_get_thread_num = 12
        self._rpc_prefetch_thread_num = 12


class DistributeTranspiler:
    """Makes programs of trainers and parameter servers from those of a single machine (`fluid.DistributeTranspiler`).

    `config`: a `DistributeTranspilerConfig`. Call `transpile` first. A trainer then runs `get_trainer_program()`, a
    server `get_startup_program(endpoint)` and `get_pserver_program(endpoint)`.
    """

    def __init__(self, config: DistributeTranspilerConfig | None = None) -> None:
        self.config = config if config is not None else DistributeTranspilerConfig()
        self._set_server_config()
        if self.config.split_method is None:
            self.config.split_method = RoundRobin
        if self.config.min_block_size < MIN_BLOCK_SIZE:
            raise AssertionError(
                f"min_block_size must be at least {MIN_BLOCK_SIZE}, got {self.config.min_block_size}"
            )
        if not issubclass(self.config.split_method, PSDispatcher):
            raise AssertionError(f"split_method must be a PSDispatcher, got {self.config.split_method!r}")
        if self.config.print_log:
            global PRINT_LOG
            PRINT_LOG = True
        self.counter_var = None
        self.distributed_mode = DistributedMode.SYNC
        if not self.config.sync_mode and not self.config.completely_not_async:
            split = self.config.runtime_split_send_recv
            self.distributed_mode = DistributedMode.ASYNC if split else DistributedMode.HALF_ASYNC

    def _set_server_config(self, server_config: ServerRuntimeConfig | None = None) -> None:
        """Set the threads of servers. Raises TypeError for anything but a `ServerRuntimeConfig`."""
        if server_config is not None and not isinstance(server_config, ServerRuntimeConfig):
            raise TypeError(
                "In DistributeTranspiler, server_config must be an instance of ServerRuntimeConfig, got "
                f"{type(server_config).__name__}"
            )
        self.server_config = server_config or ServerRuntimeConfig()

    def transpile(
        self,
        trainer_id: int,
        program: Program | None = None,
        pservers: str = "127.0.0.1:6174",
        trainers: Any = 1,
        sync_mode: bool = True,
        startup_program: Program | None = None,
        current_endpoint: str = "127.0.0.1:6174",
    ) -> None:
        """Transform `program` and `startup_program` for trainer `trainer_id`, and note the data of servers' programs.

        Args:
            trainer_id: the number of this trainer, from 0; servers pass any, such as 0.
            program, startup_program: with all that an optimizer has added; the default ones if None.
            pservers: `IP:PORT` of each server, separated by commas.
            trainers: how many there are; the endpoints of all in the modes 'nccl2' and 'collective'.
            sync_mode: whether servers wait for the gradients of all trainers.
            current_endpoint: `IP:PORT` of this trainer, for 'nccl2' and 'collective'.

        Raises:
            ValueError: an optimizer that servers do not know, when their program is asked for.
        """
        print("API is deprecated since 2.0.0 Please use FleetAPI instead.", file=sys.stderr)
        self.trainer_id = trainer_id
        self.origin_program = program if program is not None else default_main_program()
        self.startup_program = startup_program if startup_program is not None else default_startup_program()
        if self.config.mode != "pserver":
            self._transpile_collective_modes(trainers, current_endpoint)
            return
        self.trainer_num = int(trainers)
        self.sync_mode = sync_mode
        self.pserver_endpoints = pservers.split(",")
        assert self.config.split_method is not None
        self.ps_dispatcher = self.config.split_method(self.pserver_endpoints)
        self.vars_overview = VarsDistributed()
        self.optimize_ops, self.params_grads = self._get_optimize_pass()
        self.table_name = None
        self.has_distributed_lookup_table = False
        self.param_name_to_grad_name = {param.name: grad.name for param, grad in self.params_grads}
        self.grad_name_to_param_name = {grad.name: param.name for param, grad in self.params_grads}
        self.grad_name_to_send_dummy_out: OrderedDict[str, Variable] = OrderedDict()
        self.sparse_tables = sparse_lookups(self.origin_program, self._trained())
        self._mark(self.origin_program, current_endpoint)
        self._init_splited_vars()
        sent = sends_gradients(self)
        received = [self._parameter_of(var) for var, _ in sent]
        endpoint_of = {param.name: endpoint for param, (_, endpoint) in zip(received, sent, strict=True)}
        for param, (var, endpoint) in zip(received, sent, strict=True):
            held = self.param_grad_ep_mapping[endpoint]
            held["params"].append(param)
            held["grads"].append(var)
            known = self.vars_overview.get_distributed_var_by_slice(param.name)
            if known is not None:
                known.endpoint = endpoint
        self._note_kept()
        if not self.sync_mode:
            counts_steps(self)
        receives_parameters(self, endpoint_of)
        looks_up_on_servers(self, endpoint_of)
        self.origin_startup_program = self.startup_program.clone()
        starts_from_servers(self, endpoint_of)

    def _mark(self, program: Program, endpoint: str | None) -> None:
        """Mark a program as distributed, with the placement of parameters."""
        program._is_distributed, program._is_chief = True, self.trainer_id == 0
        program._endpoints, program._ps_endpoint = self.pserver_endpoints, endpoint
        program._parameters_on_pservers = self.vars_overview

    def _transpile_collective_modes(self, trainers: Any, current_endpoint: str) -> None:
        """Transform the programs for trainers with collective operations."""
        config, endpoints = self.config, str(trainers).split(",")
        if config.mode == "nccl2":
            collective.nccl2(
                self.trainer_id,
                endpoints,
                self.startup_program,
                config.nccl_comm_num,
                config.use_hierarchical_allreduce,
                config.hierarchical_allreduce_inter_nranks,
            )
            return
        ways = {"grad_allreduce": collective.GradAllReduce, "local_sgd": collective.LocalSGD}
        if config.mode != "collective" or config.collective_mode not in ways:
            raise ValueError(
                f"invalid mode {config.mode!r} with collective_mode {config.collective_mode!r}: expected 'pserver', "
                f"'nccl2', or 'collective' with one of {list(ways)}"
            )
        ways[config.collective_mode](config.nccl_comm_num).transpile(
            self.startup_program,
            self.origin_program,
            self.trainer_id,
            endpoints,
            current_endpoint,
            config.wait_port,
        )

    def _trained(self) -> set[str]:
        """The parameters that servers hold."""
        return {param.name for param, _ in self.params_grads if getattr(param, "trainable", True)}

    def _clips(self, ops: list[Operator], sent: set[str]) -> set[Operator]:
        """The operators among `ops` that clip the gradients before they are sent.

        They compute those gradients that no operator of the backward pass writes.
        """
        block = self.origin_program.global_block()
        clips: set[Operator] = set()
        backward = {
            name
            for op in block.ops
            if not op.attr(RPC_OP_ROLE_ATTR_NAME) & OpRole.Optimize
            for name in op.writes()
        }
        needed = sent - backward
        for op in reversed(ops):
            if not is_update(op) and not _decays(op) and not needed.isdisjoint(op.writes()):
                clips.add(op)
                needed.update(name for name in op.reads() if name not in backward)
        return clips

    def _get_optimize_pass(self) -> tuple[list[Operator], list[tuple[Variable, Variable]]]:
        """The update operators, and the parameters with the gradients that are sent."""
        block = self.origin_program.global_block()
        ops = [op for op in block.ops if op.attr(RPC_OP_ROLE_ATTR_NAME) & OpRole.Optimize]
        sent: dict[str, str] = {}
        for place, op in enumerate(ops):
            if PARAMETER in op.inputs and GRADIENT in op.inputs:
                sent.setdefault(op.input(PARAMETER)[0], _before_decay(ops[:place], op.input(GRADIENT)[0]))
        clips = self._clips(ops, set(sent.values()))
        updates = [op for op in ops if op not in clips]
        named = [roles[0] for op in updates if len(roles := op.attrs.get(OP_ROLE_VAR_ATTR_NAME) or []) == 2]
        order = [name for name in dict.fromkeys(named) if name in sent]
        return updates, [(block.vars[name], block.vars[sent[name]]) for name in order]

    def _get_lr_ops(self) -> list[Operator]:
        """The operators that compute learning rates."""
        return [op for op in self.origin_program_ops if op.attr(RPC_OP_ROLE_ATTR_NAME) & OpRole.LRSched]

    def _init_splited_vars(self) -> None:
        """Split parameters and gradients into blocks; see `parameter_server.slicing`."""
        block = self.origin_program.global_block()
        self.origin_program_ops = list(block.ops)
        params = [param for param, _ in self.params_grads if getattr(param, "trainable", True)]
        grads = [grad for param, grad in self.params_grads if getattr(param, "trainable", True)]
        count = len(self.pserver_endpoints) if self.config.slice_var_up else 1
        listed = slice_variable(grads, count, self.config.min_block_size)
        sends_own = self.sync_mode and self.trainer_num > 1
        wholes = {param.name: param for param in params}
        self.param_var_mapping = cut(block, slice_variable(params, count, self.config.min_block_size))
        self.grad_var_mapping = cut(block, listed, self.trainer_id if sends_own else None)
        self.param_grad_ep_mapping: OrderedDict[str, dict[str, list[Variable]]] = OrderedDict(
            (endpoint, {"params": [], "grads": []}) for endpoint in self.pserver_endpoints
        )
        for name, parts in self.param_var_mapping.items():
            self._note_parts(wholes[name], parts, "RemotePrefetch" if name in self.sparse_tables else "Param")

    def _note_parts(self, whole: Variable, parts: list[Variable], kind: str) -> None:
        """Add the parts of a variable, with their offsets in elements, to `vars_overview`."""
        offset = 0
        for number, part in enumerate(parts):
            self.vars_overview.add_distributed_var(
                origin_var=whole,
                slice_var=part,
                block_id=number,
                offset=offset,
                is_slice=len(parts) > 1,
                vtype=kind,
            )
            offset += prod(part.shape)

    def _note_kept(self) -> None:
        """Add the optimizer state of servers to `vars_overview`."""
        block = self.origin_program.global_block()
        updates = {op.input("Param")[0]: op for op in self.optimize_ops if is_update(op)}
        for endpoint, held in self.param_grad_ep_mapping.items():
            for part in held["params"]:
                known = self.vars_overview.get_distributed_var_by_slice(part.name)
                assert known is not None
                update = updates.get(known.origin.name)
                slots = sorted(update.inputs) if update is not None else []
                for slot in slots:
                    if update is None or slot in ("Param", "Grad", "LearningRate") or not update.input(slot):
                        continue
                    whole = block.vars[update.input(slot)[0]]
                    if not is_known(update.type):
                        continue
                    shape = kept_shape(update.type, slot, whole.shape, part.shape)
                    mine = VarStruct(whole.name, shape, whole.dtype, whole.type, whole.lod_level, True)
                    sliced = tuple(shape) != tuple(whole.shape)
                    self.vars_overview.add_distributed_var(
                        origin_var=whole,
                        slice_var=mine,
                        is_slice=sliced,
                        block_id=known.block_id if sliced else 0,
                        offset=known.offset // prod(part.shape[1:]) * prod(shape[1:]) if sliced else 0,
                        vtype="Optimizer",
                        endpoint=endpoint,
                    )

    def _parameter_of(self, gradient: Variable) -> Variable:
        """The block of a parameter that belongs to a block of its gradient."""
        name = original_name(gradient.name)
        place = next(k for k, var in enumerate(self.grad_var_mapping[name]) if var is gradient)
        return self.param_var_mapping[self.grad_name_to_param_name[name]][place]

    def get_trainer_program(self, wait_port: bool = True) -> Program:
        """The program of this trainer, without updates; `wait_port`: wait until all servers accept connections."""
        main, startup = self.origin_program.global_block(), self.startup_program.global_block()
        gone = {name for op in self.optimize_ops for name in op.input_arg_names}
        gone -= {*self.param_name_to_grad_name, *self.grad_name_to_param_name}
        gone -= {var.name for parts in self.grad_var_mapping.values() for var in parts}
        lr_ops = self._get_lr_ops()
        delete_ops(main, [op for op in (*self.optimize_ops, *lr_ops) if any(op is one for one in main.ops)])
        gone -= {name for op in main.ops for name in (*op.reads(), *op.writes())}
        for name in gone:
            main.vars.pop(name, None)
        delete_ops(startup, [op for op in startup.ops if not gone.isdisjoint(op.output_arg_names)])
        for name in gone:
            startup.vars.pop(name, None)
        looked_up = [op.input("W")[0] for op in main.ops if op.type == "distributed_lookup_table"]
        self._fake_init_sparsetable(list(dict.fromkeys(looked_up)))
        if wait_port and self.config.wait_port:
            wait_server_ready(self.pserver_endpoints)
        return self.origin_program

    def _fake_init_sparsetable(self, sparse_table_names: list[str]) -> None:
        """Make the startup program declare tables without values."""
        block = self.startup_program.global_block()
        for name in sparse_table_names:
            delete_ops(block, [op for op in block.ops if op.output_arg_names == [name]])
            table = block.vars[name]
            block.append_op(
                type="fake_init", inputs={}, outputs={"Out": table}, attrs={"shape": list(table.shape)}
            )

    def get_pserver_program(self, endpoint: str) -> Program:
        """The program of the server at `endpoint`, one of `pservers`; it returns when all trainers are done.

        Raises ValueError for an optimizer that servers do not know.
        """
        print(
            "get_pserver_program() is deprecated, call get_pserver_programs() to get pserver main and startup in a "
            "single call.",
            file=sys.stderr,
        )
        return ServerProgram(self, endpoint).program

    def get_pserver_programs(self, endpoint: str) -> tuple[Program, Program]:
        """The program of the server at `endpoint`, and its startup program."""
        program = ServerProgram(self, endpoint).program
        return program, startup_of(self, endpoint, program, self.origin_startup_program)

    def get_startup_program(
        self, endpoint: str, pserver_program: Program | None = None, startup_program: Program | None = None
    ) -> Program:
        """The startup program of the server at `endpoint`; `startup_program` is accepted and without effect."""
        program = pserver_program or ServerProgram(self, endpoint).program
        return startup_of(self, endpoint, program, self.origin_startup_program)


def _decays(op: Operator) -> bool:
    """True if an operator computes the contribution of a regularizer or adds it to a gradient."""
    return "/regularization" in str(op.attrs.get(OP_NAME_SCOPE, ""))


def _before_decay(ops: list[Operator], gradient: str) -> str:
    """The name of a gradient before `ops` added the contribution of a regularizer."""
    for op in reversed(ops):
        if op.type == "sum" and _decays(op) and gradient in op.output("Out"):
            gradient = op.input("X")[0]
    return gradient
