"""Transpilers for data-parallel processes, each with a copy of the model (`fluid.transpiler.collective`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...base.dtypes import VarType
from ...framework import OpRole, Parameter, Program, default_main_program, default_startup_program
from ...framework.gradients.exchange import reduce_gradients, scale_loss_gradients, wait_for_all

__all__ = ["GradAllReduce", "LocalSGD"]


class Collective:
    """Base of the collective transpilers: parameters are broadcast from the first process.

    Args:
        nrings: the number of NCCL rings, without effect here.
    """

    mode = ""

    def __init__(self, nrings: int) -> None:
        self.nrings = nrings
        self.endpoints: list[str] | None = None
        self.current_endpoint: str | None = None
        self.nranks: int | None = None
        self.rank: int | None = None
        self.startup_program: Program | None = None
        self.main_program: Program | None = None
        self.op_role_key, self.op_role_var_key = "op_role", "op_role_var"

    def transpile(
        self,
        startup_program: Program | None,
        main_program: Program | None,
        rank: int,
        endpoints: Sequence[str] | str,
        current_endpoint: str,
        wait_port: bool,
    ) -> None:
        """Transform the programs of process `rank`; None: the default ones.

        Args:
            endpoints: addresses of all processes, by rank; a list, or a text with commas.
            current_endpoint: that of this process.
            wait_port: whether the first process waits until the others answer at their addresses. They do so under
                NCCL alone: with True this has no effect here.

        Raises:
            ValueError: there are fewer than two processes, or this one is not among them.
        """
        if isinstance(endpoints, str):
            endpoints = endpoints.split(",")
        self.startup_program = startup_program or default_startup_program()
        self.main_program = main_program or default_main_program()
        self.nranks = len(endpoints)
        if self.nranks == 1 and self.mode != "single_process_multi_thread":
            raise ValueError(
                "the number of endpoints must be greater than 1: collective training needs several processes"
            )
        if current_endpoint not in endpoints:
            raise ValueError(f"current endpoint {current_endpoint} is not in {list(endpoints)}")
        if rank < 0:
            raise ValueError(f"rank must be 0 or more, got {rank}")
        self.rank, self.endpoints = rank, list(endpoints)
        self.current_endpoint, self.wait_port = current_endpoint, wait_port
        self._transpile_startup_program()
        self._transpile_main_program()

    def _transpile_main_program(self) -> None:
        raise NotImplementedError("call the transpile method of GradAllReduce or LocalSGD")

    def _transpile_startup_program(self) -> None:
        assert self.endpoints is not None and self.current_endpoint is not None and self.rank is not None
        for ring_id in range(self.nrings):
            self._init_communicator(
                self.startup_program,
                self.current_endpoint,
                self.endpoints,
                self.rank,
                ring_id,
                self.wait_port,
            )
        self._broadcast_params()

    def _init_communicator(
        self,
        program: Any,
        current_endpoint: str,
        endpoints: Sequence[str],
        rank: int,
        ring_id: int,
        wait_port: bool,
    ) -> None:
        block = program.global_block()
        nccl_id = block.create_var(name=block._new_name("nccl_id"), persistable=True, type=VarType.RAW)
        others = [endpoint for endpoint in endpoints if endpoint != current_endpoint]
        block.append_op(
            type="c_gen_nccl_id",
            inputs={},
            outputs={"Out": nccl_id},
            attrs={
                "rank": rank,
                "endpoint": current_endpoint,
                "other_endpoints": others,
                self.op_role_key: OpRole.Forward,
            },
        )
        block.append_op(
            type="c_comm_init",
            inputs={"X": nccl_id},
            outputs={},
            attrs={
                "nranks": len(endpoints),
                "rank": rank,
                "ring_id": ring_id,
                self.op_role_key: OpRole.Forward,
            },
        )

    def _broadcast_params(self) -> None:
        assert self.startup_program is not None
        block = self.startup_program.global_block()
        ring, param = -1, None
        for param in _parameters(block):
            ring = (ring + 1) % self.nrings
            block.append_op(
                type="c_broadcast",
                inputs={"X": param},
                outputs={"Out": param},
                attrs={"ring_id": ring, "root": 0, self.op_role_key: OpRole.Forward},
            )
        if param is not None:
            wait_for_all(block, len(block.ops), param, self.nrings, OpRole.Forward)


def _parameters(block: Any) -> Iterator[Any]:
    """The parameters that are replicated in all processes."""
    for param in block.program.global_block().all_parameters():
        if not getattr(param, "is_distributed", False):
            yield param


class GradAllReduce(Collective):
    """Data parallelism: every process updates with the mean of all processes' gradients.

    The gradient of the loss is divided by the number of processes, and c_allreduce_sum adds each gradient up as soon as
    it is there. See `Collective`.
    """

    mode = "grad_allreduce"

    def __init__(self, nrings: int = 2) -> None:
        super().__init__(nrings)

    def _transpile_main_program(self) -> None:
        assert self.main_program is not None and self.nranks is not None
        scale_loss_gradients(self.main_program, 1.0 / self.nranks)
        reduce_gradients(self.main_program, self.nrings)


class LocalSGD(Collective):
    """Local SGD: every process makes its own updates; after each, parameters are averaged over all processes.

    The processes exchange what their updates have changed since the last mean, which `param@SNAPSHOT` holds. See
    `Collective`.
    """

    mode = "local_sgd"

    def __init__(self, nrings: int = 2) -> None:
        super().__init__(nrings)
        self.snapshot_key = "@SNAPSHOT"

    def snapshot_name(self, param_name: str) -> str:
        """The variable with the last mean of a parameter."""
        return param_name + self.snapshot_key

    def _transpile_startup_program(self) -> None:
        super()._transpile_startup_program()
        assert self.startup_program is not None
        block = self.startup_program.global_block()
        for param in _parameters(block):
            self._copy(block, param, self._snapshot(block, param), OpRole.Forward)

    def _snapshot(self, block: Any, param: Parameter) -> Any:
        return block.create_var(
            name=self.snapshot_name(param.name),
            shape=param.shape,
            dtype=param.dtype,
            persistable=True,
            stop_gradient=True,
        )

    def _copy(self, block: Any, source: Any, target: Any, role: int) -> None:
        block.append_op(
            type="assign", inputs={"X": [source]}, outputs={"Out": [target]}, attrs={self.op_role_key: role}
        )

    def _transpile_main_program(self) -> None:
        assert self.main_program is not None and self.nranks is not None
        block = self.main_program.global_block()
        role = {self.op_role_key: OpRole.Optimize}
        exchanged: list[tuple[Any, Any]] = []
        ring = -1
        for at, op in reversed(list(enumerate(block.ops))):
            if not {"Param", "Grad", "LearningRate"} <= set(op.input_names):
                continue
            param: Any = block.vars[op.input("Param")[0]]
            if getattr(param, "is_distributed", False):
                continue
            snapshot = self._snapshot(block, param)
            ring = (ring + 1) % self.nrings
            subtract = {"X": [snapshot], "Y": [param]}
            block._insert_op(
                at + 1, type="elementwise_sub", inputs=subtract, outputs={"Out": [param]}, attrs=role
            )
            block._insert_op(
                at + 2, type="c_sync_calc_stream", inputs={"X": param}, outputs={"Out": param}, attrs=role
            )
            block._insert_op(
                at + 3,
                type="c_allreduce_sum",
                inputs={"X": [param]},
                outputs={"Out": [param]},
                attrs={"ring_id": ring, **role},
            )
            exchanged.append((param, snapshot))
        if not exchanged:
            return
        wait_for_all(block, len(block.ops), exchanged[-1][0], self.nrings, OpRole.Optimize)
        for param, snapshot in reversed(exchanged):
            block.append_op(
                type="scale",
                inputs={"X": [param]},
                outputs={"Out": [param]},
                attrs={"scale": 1.0 / self.nranks, **role},
            )
            subtract = {"X": [snapshot], "Y": [param]}
            block.append_op(type="elementwise_sub", inputs=subtract, outputs={"Out": [param]}, attrs=role)
            self._copy(block, param, snapshot, OpRole.Optimize)


class SingleProcessMultiThread(GradAllReduce):
    """`GradAllReduce` for the devices of one process."""

    mode = "single_process_multi_thread"

    def __init__(self) -> None:
        super().__init__(1)

    def _transpile_startup_program(self) -> None:
        assert self.startup_program is not None
        self.startup_program.global_block().append_op(
            type="c_comm_init_all", inputs={}, outputs={}, attrs={"ring_id": 0}
        )


def nccl2(
    trainer_id: int,
    trainers: Sequence[str],
    startup_program: Program,
    nccl_comm_num: int = 1,
    use_hierarchical_allreduce: bool = False,
    hierarchical_allreduce_inter_nranks: int = 0,
) -> None:
    """Mode nccl2 of `DistributeTranspiler`: add the operator with the trainers' addresses to the startup program.

    The main program stays as it is; `CompiledProgram` exchanges the gradients, by `BuildStrategy.num_trainers`.
    """
    block = startup_program.global_block()
    nccl_id = block.create_var(name="NCCLID", persistable=True, type=VarType.RAW)
    for number in range(1, nccl_comm_num):
        block.create_var(name=f"NCCLID_{number}", persistable=True, type=VarType.RAW)
    if use_hierarchical_allreduce:
        for number in range(nccl_comm_num):
            block.create_var(name=f"Hierarchical_inter_NCCLID_{number}", persistable=True, type=VarType.RAW)
            block.create_var(name=f"Hierarchical_exter_NCCLID_{number}", persistable=True, type=VarType.RAW)
    block.append_op(
        type="gen_nccl_id",
        inputs={},
        outputs={"NCCLID": nccl_id},
        attrs={
            "trainers": list(trainers),
            "trainer_id": trainer_id,
            "nccl_comm_num": nccl_comm_num,
            "use_hierarchical_allreduce": use_hierarchical_allreduce,
            "hierarchical_allreduce_inter_nranks": hierarchical_allreduce_inter_nranks,
        },
    )
