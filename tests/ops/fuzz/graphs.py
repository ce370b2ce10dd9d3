"""Random programs of several operators, run by plan and interpreter: fusion, memory shared, views, updates in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidlite.base import unique_name
from fluidlite.base.place import CPUPlace
from fluidlite.executor import Executor, Scope, scope_guard
from fluidlite.framework import Program, Variable, program_guard
from fluidlite.framework.gradients.backward import gradients

from ...engines import run_by
from .cases import Chooser

UNARY = [
    ("relu", {}),
    ("tanh", {}),
    ("sigmoid", {}),
    ("square", {}),
    ("abs", {}),
    ("leaky_relu", {"alpha": 0.1}),
    ("scale", {"scale": -0.5, "bias": 0.25}),
    ("softmax", {"axis": -1}),
    ("clip", {"min": -1.0, "max": 1.5}),
    ("assign", {}),
    ("softplus", {}),
    ("gelu", {}),
    ("sin", {}),
    ("cumsum", {"axis": -1}),
    ("stanh", {}),
]
BINARY = ["elementwise_add", "elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_max"]
EXTRA = {
    "reshape2": ["XShape"], "transpose2": ["XShape"], "squeeze2": ["XShape"], "unsqueeze2": ["XShape"],
    "flatten2": ["XShape"], "dropout": ["Mask"],
}  # fmt: skip
OUT = {"stack": "Y", "layer_norm": "Y", "batch_norm": "Y"}


class Graph:
    """A program under construction: `values` are variables that later operators may read.

    `like`: the same program, drawn before, whose batch is left open here: the first dimension of all that is fed and
    has as many rows as the first of these.
    """

    def __init__(self, chooser: Chooser, like: Graph | None = None) -> None:
        self.like = like
        self.c = chooser
        self.program = Program()
        self.block = self.program.global_block()
        self.feed: dict[str, np.ndarray] = {}
        self.kept: dict[str, np.ndarray] = {}
        self.values: list[Variable] = []
        self.serial = 0

    def shape(self, var: Variable) -> tuple[int, ...]:
        """The shape of a variable, without open dimensions."""
        return tuple((self.like or self).block.var(var.name).shape)

    def rows(self) -> int:
        """The size of the batch; -1 if there is none."""
        return next((value.shape[0] for value in self.feed.values() if value.ndim), -1)

    def name(self) -> str:
        self.serial += 1
        return f"v{self.serial}"

    def data(self, shape: tuple[int, ...]) -> Variable:
        """A variable that is fed, or one of the scope."""
        name, kept = self.name(), self.c.one_in(3)
        value = self.c.floats(shape, "float32", "plain")
        (self.kept if kept else self.feed)[name] = value
        opened = self.like is not None and not kept and shape[:1] == (self.like.rows(),)
        var = self.block.create_var(
            name=name,
            shape=(-1, *shape[1:]) if opened else shape,
            dtype="float32",
            is_data=not kept,
            persistable=kept,
            stop_gradient=False,
        )
        self.values.append(var)
        return var

    def op(
        self, op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], count: int = 1, into: Any = None
    ) -> None:
        """Append an operator and keep its results."""
        slot = OUT.get(op_type, "Out")
        made = [into] if into is not None else [self.block.create_var(name=self.name()) for _ in range(count)]
        outputs = {slot: made}
        for extra in EXTRA.get(op_type, []):
            outputs[extra] = [self.block.create_var(name=self.name())]
        if op_type == "layer_norm":
            outputs.update({s: [self.block.create_var(name=self.name())] for s in ("Mean", "Variance")})
        self.block.append_op(type=op_type, inputs=inputs, outputs=outputs, attrs=attrs)
        if into is None:
            self.values += made

    def pick(self) -> Variable:
        return self.values[-1] if self.c.bool() else self.c.pick(self.values)

    def grow(self) -> None:
        """One more operator."""
        c, x = self.c, self.pick()
        shape = self.shape(x)
        numel = int(np.prod(shape))
        how = c.int(0, 13)
        if how <= 3:
            op_type, attrs = c.pick(UNARY)
            if op_type not in ("softmax", "cumsum") or shape:
                self.op(op_type, {"X": [x]}, attrs)
        elif how <= 6:
            same = [v for v in self.values if self.shape(v) == shape]
            if c.bool():
                start = c.int(0, len(shape) - 1)
                y = self.data(shape[start : c.int(start + 1, len(shape))])
                self.op(c.pick(BINARY), {"X": [x], "Y": [y]}, {"axis": start})
            else:
                y = c.pick(same)
                into = x if c.one_in(10) and self.plain else None
                self.op(c.pick(BINARY), {"X": [x], "Y": [y]}, {"axis": -1}, into=into)
        elif how == 7:
            same = [v for v in self.values if self.shape(v) == shape]
            self.op("sum", {"X": [c.pick(same) for _ in range(c.int(1, 4))]}, {})
        elif how == 8:
            self.view(x, shape, numel)
        elif how == 9:
            axis = c.int(0, len(shape) - 1)
            op_type = c.pick(
                ["reduce_sum", "reduce_mean", "reduce_max", "concat", "split", "stack", "slice", "mean"]
            )
            same = [v for v in self.values if self.shape(v) == shape]
            if op_type == "concat":
                self.op("concat", {"X": [c.pick(same) for _ in range(c.int(1, 3))]}, {"axis": axis})
            elif op_type == "split":
                self.op(
                    "split",
                    {"X": [x]},
                    {
                        "axis": axis,
                        "num": 0,
                        "sections": [shape[axis]] if shape[axis] < 2 else [1, shape[axis] - 1],
                    },
                    1 if shape[axis] < 2 else 2,
                )
            elif op_type == "stack" and len(shape) < 4:
                self.op("stack", {"X": [c.pick(same) for _ in range(c.int(1, 3))]}, {"axis": axis})
            elif op_type == "slice":
                n = shape[axis]
                start = c.int(0, max(0, n - 1))
                self.op(
                    "slice",
                    {"Input": [x]},
                    {
                        "axes": [axis],
                        "starts": [start],
                        "ends": [c.int(start + 1, max(start + 1, n))],
                        "decrease_axis": [],
                    },
                )
            elif op_type == "mean":
                self.op("mean", {"X": [x]}, {})
            elif op_type.startswith("reduce"):
                self.op(op_type, {"X": [x]}, {"dim": [axis], "keep_dim": c.bool(), "reduce_all": c.one_in(5)})
        elif how == 10:
            if len(shape) >= 2:
                wide, act = self.data((shape[-1], c.int(1, 9))), c.bool()
                self.op(
                    "mul", {"X": [x], "Y": [wide]}, {"x_num_col_dims": len(shape) - 1, "y_num_col_dims": 1}
                )
                out = self.values[-1]
                if c.bool():
                    bias = self.data((self.shape(out)[-1],))
                    self.op("elementwise_add", {"X": [out], "Y": [bias]}, {"axis": len(shape) - 1})
                    if act:
                        self.op(c.pick(["relu", "tanh", "sigmoid"]), {"X": [self.values[-1]]}, {})
        elif how == 11:
            if len(shape) >= 2:
                axis = c.int(1, len(shape) - 1)
                n = int(np.prod(shape[axis:]))
                self.op(
                    "layer_norm",
                    {"X": [x], "Scale": [self.data((n,))], "Bias": [self.data((n,))]},
                    {"begin_norm_axis": axis, "epsilon": 1e-3},
                )
        elif how == 12 and len(shape) >= 2:
            y = self.data((*shape[:-2], shape[-1], c.int(1, 5)))
            self.op(
                "matmul", {"X": [x], "Y": [y]}, {"transpose_X": False, "transpose_Y": False, "alpha": 1.0}
            )
        elif how == 13 and self.plain and c.one_in(2):
            into = c.pick(self.values)
            if self.kept and c.bool():
                into = self.block.var(c.pick(sorted(self.kept)))
            same = [v for v in self.values if self.shape(v) == self.shape(into)]
            self.op(
                *c.pick(
                    [
                        ("assign", {"X": [c.pick(same)]}, {}),
                        ("scale", {"X": [into]}, {"scale": 0.5}),
                        ("relu", {"X": [c.pick(same)]}, {}),
                    ]
                ),
                into=into,
            )

    def view(self, x: Variable, shape: tuple[int, ...], numel: int) -> None:
        c = self.c
        op_type = c.pick(["reshape2", "transpose2", "squeeze2", "unsqueeze2", "flatten2"])
        if op_type == "reshape2" and numel:  # 0 in a shape stands for the length that is there
            target = c.pick([[numel], [1, numel], [numel, 1], list(shape[::-1])])
            if self.like is not None and numel in target:
                target[target.index(numel)] = -1
            self.op(op_type, {"X": [x]}, {"shape": target})
        elif op_type == "transpose2":
            self.op(op_type, {"X": [x]}, {"axis": [int(k) for k in c.rng().permutation(len(shape))]})
        elif op_type == "squeeze2" and len(shape) > 1 and 1 in shape:
            self.op(op_type, {"X": [x]}, {"axes": [shape.index(1)]})
        elif op_type == "unsqueeze2" and len(shape) < 4:
            self.op(op_type, {"X": [x]}, {"axes": [c.int(0, len(shape))]})
        elif op_type == "flatten2":
            self.op(op_type, {"X": [x]}, {"axis": c.int(0, len(shape))})

    def build(self) -> list[str]:
        """Grow the program; returns what to fetch."""
        c = self.c
        self.plain = c.bool()  # without gradients, so that variables may be overwritten
        with unique_name.guard(), program_guard(self.program):
            for _ in range(c.int(1, 3)):
                self.data(c.shape(1, 4, 0 if c.one_in(8) else 1))
            for _ in range(c.int(2, 14)):
                self.grow()
            fetches = [v.name for v in self.values if c.one_in(3)] or [self.values[-1].name]
            if not self.plain:
                target = self.values[-1]
                leaves = [self.block.var(n) for n in (*self.feed, *self.kept)]
                found = gradients([target], leaves)
                fetches += [v.name for v in found if v is not None]
                if c.bool():
                    rate = self.block.create_var(name="rate", shape=(1,), dtype="float32", is_data=True)
                    self.feed["rate"] = np.array([0.1], "float32")
                    for leaf, grad in zip(leaves, found, strict=False):
                        if grad is not None and leaf.name in self.kept:
                            self.block.append_op(
                                type="sgd",
                                inputs={"Param": [leaf], "Grad": [grad], "LearningRate": [rate]},
                                outputs={"ParamOut": [leaf]},
                            )
        return fetches

    def run(self, engine: str, fetches: list[str], steps: int = 3) -> list[dict[str, np.ndarray]]:
        """The fetches of each step, and the variables of the scope after it."""
        with run_by(engine):
            made = self.steps(
                [{name: np.roll(value, step) for name, value in self.feed.items()} for step in range(steps)],
                fetches,
                raising=True,
            )
        return made

    def steps(
        self, feeds: list[dict[str, np.ndarray]], fetches: list[str], raising: bool = False
    ) -> list[dict[str, Any]]:
        """The fetched values of each step and the scope's variables after it; its exception, unless `raising`."""
        scope, made = Scope(), []
        with scope_guard(scope):
            for name, value in self.kept.items():
                scope.var(name).get_tensor().set(value.copy(), CPUPlace())
            executor = Executor(CPUPlace())
            for feed in feeds:
                try:
                    got = executor.run(self.program, feed=feed, fetch_list=fetches)
                except Exception as error:
                    if raising:
                        raise
                    made.append({"error": type(error).__name__, "text": str(error)})
                    continue
                made.append({n: np.array(v) for n, v in zip(fetches, got, strict=True)})
                made[-1].update({f"{n} kept": np.array(scope.find_var(n).get_tensor()) for n in self.kept})
        return made
