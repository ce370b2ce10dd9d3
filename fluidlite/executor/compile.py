"""The compiler: from a request to a plan.

    Request  program, feeds, fetches, scope         ir/request.py
      prune         the operators that have to run  frontend.py
      structure     blocks inlined, loops as scans, one name for each value
      infer_shapes  exact shapes, guards, constants
    Typed    operators with exact shapes
      lower         calls of kernels                cpu/lowering.py
      optimize      the passes                      cpu/optimize.py
      allocate      live ranges of temporaries      cpu/assembly.py
    Code     instructions
      Assembly      the engine
    Plan     runs, fetches, describes itself        cpu/plan.py

On a GPU the phases after `infer_shapes` are those of `cuda/compile.py`. The body of a scan, a segment, and the two
halves of a traced function are plans for requests of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial
from typing import Any

from ..base import flags, long_work
from ..base.sizes import formula
from ..framework import Operator, Program
from .control_flow.scan import ScanSpec
from .cpu.assembly import Assembly, allocate
from .cpu.bodies import BodyPlan, write_outside
from .cpu.code import Code, changed_early
from .cpu.lowering import lower
from .cpu.optimize import optimize
from .cpu.plan import Plan
from .failures import Unsupported
from .frontend import Typed, infer_shapes, prune, structure
from .ir import jumps
from .ir.instructions import Instruction
from .ir.request import Feeds, Request
from .ir.step_plan import StepPlan
from .ir.type_env import TypeEnv
from .scope import Scope


@long_work.collector_paused()
def compile_plan(request: Request) -> StepPlan:
    """A plan for a request.

    Raises Unsupported if the program cannot be planned, EnforceNotMet if an operator reads a variable that is neither
    fed, computed nor initialised.
    """
    if request.device is None:
        return compile_for_cpu(request)
    from .cuda.compile import lower as lower_to_launches
    from .cuda.plan import DevicePlan

    code = lower_to_launches(typed(request), request)
    show("fuse", code.instructions)
    return DevicePlan(request, code)


def typed(request: Request) -> Typed:
    """The target-independent phases."""
    meta = TypeEnv(request, partial(compile_body, request.program, request.scope))
    ops = prune(request, meta)
    show("prune", ops)
    graph = structure(ops, request, meta)
    show("structure", graph.ops)
    found = infer_shapes(graph, request, meta)
    show("infer_shapes", [op for op, _ in found.steps], meta)
    return found


def compile_for_cpu(request: Request) -> Plan:
    """`compile_plan` for the CPU."""
    found = typed(request)
    code = lower(found, request)
    show("lower", code.instructions)
    optimize(code, request.early is not None)
    show("optimize", code.instructions)
    plan = emit(found, code, request)
    assembly = plan.assembly
    if (assembly.loops or code.ranked.names) and not plan.accepts(list(request.feed.values())):
        raise Unsupported("no body plan of a scan admits the sizes of some iterations")
    return plan


def compile_body(program: Program, scope: Scope, spec: ScanSpec, feeds: Feeds) -> BodyPlan:
    """A plan for an iteration of a scan, on inputs of these shapes."""
    outputs = [*spec.of("RaggedOut", "StackedOut", "Final"), *spec.names["Sums"]]
    request = Request(program, scope, feeds.arrays, outputs, spec.ops, spec.block, body=feeds)
    found = typed(request)
    code = lower(found, request)
    body = BodyPlan(spec, feeds, code, [op for op, _ in found.steps])
    optimize(code, pack=body.pack)
    write_outside(body)
    body.plan = emit(found, code, request)
    body.check()
    return body


def emit(found: Typed, code: Code, request: Request) -> Plan:
    """The plan with the code in an engine."""
    restored = changed_early(code)
    assembly = Assembly(code, allocate(code))
    plan = Plan(request, code, assembly, restored, found.ends_early)
    assembly.settle()
    return plan


def show(phase: str, code: Iterable[Any], meta: TypeEnv | None = None) -> None:
    """Print operators or instructions after a phase, with the shapes of results if `meta` knows them; what is between
    jumps is indented."""
    if not flags.prints_phases():
        return
    lines: list[str] = []
    depth = 1
    for each in code:
        is_instruction = isinstance(each, Instruction)
        kind = each.action if is_instruction else each.definition
        depth -= kind in jumps.ENDS
        lines.append("  " * depth + (each.describe() if is_instruction else _text(each, meta)))
        depth += kind in jumps.BEGINS
    sys.stderr.write("\n".join([f"== {phase}: {len(lines)}", *lines, ""]))


def _text(op: Operator, meta: TypeEnv | None) -> str:
    made = []
    for name in dict.fromkeys(op.writes()):
        shape = None if meta is None else meta.shapes.get(name)
        made.append(name if shape is None else f"{name}[{', '.join(map(formula, shape))}]")
    return f"{op.type}({', '.join(dict.fromkeys(op.reads()))}) -> {', '.join(made)}"
