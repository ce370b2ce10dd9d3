"""GEO-SGD: trainers make local updates and exchange parameter deltas every few steps."""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Any

from ...base.dtypes import VarType
from ...framework import Block, Program, Variable, default_main_program, default_startup_program
from .details import VarsDistributed, wait_server_ready
from .distribute_transpiler import RPC_OP_ROLE_ATTR_NAME as RPC_OP_ROLE_ATTR_NAME
from .distribute_transpiler import RPC_OP_ROLE_ATTR_VALUE as RPC_OP_ROLE_ATTR_VALUE
from .distribute_transpiler import DistributedMode, DistributeTranspiler, DistributeTranspilerConfig
from .distribute_transpiler import op_role_attr_name as op_role_attr_name
from .parameter_server.server import startup_of
from .parameter_server.trainer import LOOKUPS, control_var, cut, slice_variable, starts_from_servers

UNUSED = "127.0.0.1:6164"
"""A placeholder address in Fluid's programs, replaced by the communicator."""


class GeoSgdTranspiler(DistributeTranspiler):
    """Makes programs of trainers that send deltas, and of servers that add them up.

    As `DistributeTranspiler`, of `config.geo_sgd_mode`. Trainers keep their updates and whole tables; they need a
    running `fluid.communicator.Communicator`, which exchanges every `config.geo_sgd_need_push_nums` steps.
    """

    def __init__(self, config: DistributeTranspilerConfig | None = None) -> None:
        super().__init__(config)
        self.distributed_mode = DistributedMode.GEO

    def transpile(
        self,
        trainer_id: int,
        program: Program | None = None,
        pservers: str = "127.0.0.1:6174",
        trainers: Any = 1,
        sync_mode: bool = False,
        startup_program: Program | None = None,
        current_endpoint: str = "127.0.0.1:6174",
    ) -> None:
        """Transform `program` and `startup_program` for trainer `trainer_id`; see `DistributeTranspiler`."""
        print("API is deprecated since 2.0.0 Please use FleetAPI instead.", file=sys.stderr)
        self.trainer_id, self.trainer_num, self.sync_mode = trainer_id, int(trainers), sync_mode
        self.origin_program = program if program is not None else default_main_program()
        self.startup_program = startup_program if startup_program is not None else default_startup_program()
        self.pserver_endpoints = pservers.split(",")
        assert self.config.split_method is not None
        self.ps_dispatcher = self.config.split_method(self.pserver_endpoints)
        self.vars_overview = VarsDistributed()
        self.optimize_ops, self.params_grads = self._get_optimize_pass()
        self.origin_startup_program = self.startup_program.clone()
        self._mark(self.origin_program, current_endpoint)
        block = self.origin_program.global_block()
        lookups = [op for op in block.ops if op.type in LOOKUPS and op.attr("is_sparse")]
        for op in lookups:
            op._set_attr("remote_prefetch", False)
        self.sparse_tables = {op.input("W")[0]: [op] for op in lookups}
        self._init_splited_vars()
        endpoint_of = self._dispatch()
        looked_up = [op for op in lookups if op.input("W")[0] in self.param_var_mapping]
        block.append_op(
            type="send",
            inputs={"X": [op.input("Ids")[0] for op in looked_up]},
            outputs={"Out": control_var(block)},
            attrs={"epmap": [UNUSED], "send_varnames": [op.input("W")[0] for op in looked_up]},
        )
        starts_from_servers(self, endpoint_of)
        startup = self.startup_program.global_block()
        startup.append_op(
            type="send",
            inputs={"X": startup.create_var(name="param_init", shape=[0], dtype=VarType.BOOL)},
            outputs={"Out": control_var(startup)},
            attrs={"epmap": [UNUSED], "send_varnames": ["param_init"]},
        )

    def _init_splited_vars(self) -> None:
        """Split parameters into blocks, and declare the deltas of parameters and blocks."""
        block, startup = self.origin_program.global_block(), self.startup_program.global_block()
        trained = self._trained()
        params = [param for param, _ in self.params_grads if param.name in trained]
        count = len(self.pserver_endpoints)
        self.param_var_mapping = cut(block, slice_variable(params, count, self.config.min_block_size))
        for param in params:
            sparse = param.name in self.sparse_tables
            parts = self.param_var_mapping[param.name]
            for place, var in [(startup, param), (block, param), *((block, part) for part in parts)]:
                _delta(place, var, sparse)
            self._note_parts(param, parts, "Param")

    def _dispatch(self) -> dict[str, str]:
        """Assign each block of a parameter to a server."""
        self.param_grad_ep_mapping = OrderedDict(
            (endpoint, {"params": [], "grads": []}) for endpoint in self.pserver_endpoints
        )
        endpoint_of: dict[str, str] = {}
        self.vars_info: OrderedDict[str, OrderedDict[str, list[str]]] = OrderedDict()
        for name, parts in self.param_var_mapping.items():
            endpoints = self.ps_dispatcher.dispatch(parts)
            self.vars_info[name] = OrderedDict(
                var_names=[part.name for part in parts],
                sections=[str(part.shape[0]) for part in parts],
                epmap=endpoints,
                is_sparse=[str(name in self.sparse_tables)],
            )
            for part, endpoint in zip(parts, endpoints, strict=True):
                self.param_grad_ep_mapping[endpoint]["params"].append(part)
                endpoint_of[part.name] = endpoint
                known = self.vars_overview.get_distributed_var_by_slice(part.name)
                assert known is not None
                known.endpoint = endpoint
        return endpoint_of

    def _get_vars_info(self) -> OrderedDict[str, OrderedDict[str, list[str]]]:
        """For each parameter, its blocks, their rows and servers, and whether it is a table: all as text."""
        return self.vars_info

    def get_trainer_program(self, wait_port: bool = True) -> Program:
        """The program of this trainer; with `wait_port`, waits until all servers accept connections."""
        if wait_port:
            wait_server_ready(self.pserver_endpoints)
        return self.origin_program

    def get_pserver_program(self, endpoint: str) -> Program:
        """The program of the server at `endpoint`, which adds received deltas to its parameters."""
        program = Program()
        program.random_seed = self.origin_program.random_seed
        self._mark(program, endpoint)
        home = program.global_block()
        blocks, listed, sparse = [], [], []
        for part in self.param_grad_ep_mapping[endpoint]["params"]:
            held = home.create_var(
                name=part.name, persistable=True, dtype=part.dtype, type=part.type, shape=part.shape
            )
            arriving = f"{part.name}.delta"
            rows = self.origin_program.global_block().vars[arriving].type == VarType.SELECTED_ROWS
            delta = _delta(home, part, rows)
            block = program._create_block(0)
            block.append_op(type="sum", inputs={"X": [held, delta]}, outputs={"Out": held}, attrs={})
            blocks.append(block)
            listed.append(f"{arriving}:{block.idx}")
            if rows:
                sparse.append(f"{arriving}:{part.name}")
        program.current_block_idx = 0
        home.append_op(
            type="listen_and_serv",
            inputs={"X": []},
            outputs={},
            attrs={
                "optimize_blocks": blocks,
                "endpoint": endpoint,
                "Fanin": self.trainer_num,
                "distributed_mode": DistributedMode.GEO,
                "grad_to_block_id": listed,
                "sparse_grad_to_param": sparse,
                "rpc_get_thread_num": self.server_config._rpc_get_thread_num,
                "rpc_send_thread_num": self.server_config._rpc_send_thread_num,
                "rpc_prefetch_thread_num": self.server_config._rpc_prefetch_thread_num,
            },
        )
        return program

    def get_pserver_programs(self, endpoint: str) -> tuple[Program, Program]:
        """The program of the server at `endpoint`, and its startup program."""
        program = self.get_pserver_program(endpoint)
        return program, startup_of(self, endpoint, program, self.origin_startup_program)


def _delta(block: Block, var: Variable, rows: bool) -> Variable:
    """Declare the delta of `var`, or of rows of it."""
    kind = VarType.SELECTED_ROWS if rows else var.type
    return block.create_var(
        name=f"{var.name}.delta", persistable=False, dtype=var.dtype, type=kind, shape=var.shape
    )
