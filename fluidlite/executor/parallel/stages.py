"""`Stages`: a program on several places, as what each place computes and what is done once for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from ...framework import Operator, OpRole, Program
from ...ops.registry import EMPTY

ONCE = OpRole.Optimize | OpRole.RPC | OpRole.Dist | OpRole.LRSched


@dataclass
class Stage:
    """Operators between two points at which the places wait for each other."""

    once: bool
    """Whether it runs once for all places, on the variables that they share; otherwise each place runs it."""

    ops: list[int] = field(default_factory=list)
    """The positions of its operators in the global block."""

    takes: list[str] = field(default_factory=list)
    """What it reads that is fed, or that an earlier stage has made."""

    gives: list[str] = field(default_factory=list)
    """What it makes and a later stage takes."""

    gradients: list[str] = field(default_factory=list)
    """Gradients of parameters that are complete behind it: the places add them up."""


class Stages:
    """The stages of a program: every other one is done once, the first one by each place.

    An operator belongs to the first stage that follows everything it depends on, so that a training program has two:
    forward and backward pass, and the update. What reads updated parameters comes in a third one. An operator is done
    once if its role says so (optimizers, schedules, communication), and behind those if it computes the same at all
    places, such as an average of the parameters; but not if it depends on values that differ, such as a rate that is
    fed for each place, or writes what each place has for itself.

    `own`: persistable variables that each place has for itself already, of which `different` may differ. `reduced`: the
    places share all of them, so that only the first place's values matter to an update.
    """

    stages: list[Stage]

    private: list[str]
    """The persistable variables that each place writes for itself."""

    different: set[str]
    """The persistable variables whose values may differ from place to place after a step."""

    def __init__(
        self,
        program: Program,
        own: Set[str] = frozenset(),
        different: Set[str] = frozenset(),
        reduced: bool = False,
    ) -> None:
        self._block = program.global_block()
        self._reduced = reduced
        self.different = {*different}
        self._find_different()
        self._own = {*own}
        self._assign()
        while not (reduced or self._own.isdisjoint(self._once)):
            self._assign()
        self._connect()

    def _find_different(self) -> None:
        """Find what differs from place to place: what depends on the places' batches, or is drawn by each of them."""
        persistable = self._block._is_persistable
        while True:
            differs, made, each = {*self.different}, set[str](), list[bool]()
            for op in self._block.ops:
                unknown = (n for n in op.reads() if n not in made and n != EMPTY and not persistable(n))
                reads = not differs.isdisjoint(op.reads()) or any(unknown)
                each.append(reads)
                drawn = not _is_once(op) and (op.definition.random or op.type == "read")
                (differs.update if reads or drawn else differs.difference_update)(op.writes())
                differs.difference_update(_gradients(op))
                made.update(op.writes())
            found = {name for name in differs if name != EMPTY and persistable(name)}
            if found <= self.different:
                break
            self.different |= found
        self._differ = each

    def _assign(self) -> None:
        """Give each operator to a stage: 0, 2, ... are those of each place. Note what places have for themselves."""
        ops, persistable = self._block.ops, self._block._is_persistable
        alike = [
            self._reduced or not (differs or not self._own.isdisjoint(op.writes()))
            for op, differs in zip(ops, self._differ, strict=True)
        ]
        once = [_is_once(op) and same for op, same in zip(ops, alike, strict=True)]
        shared = {
            n for op, single in zip(ops, once, strict=True) if single for n in op.writes() if persistable(n)
        }
        written: dict[str, int] = {}  # the last stage that writes a variable
        read: dict[str, int] = {}  # the last stage that reads it
        self.stages = [Stage(False)]
        for at, op in enumerate(ops):
            before = [written.get(name, 0) for name in op.reads()]
            before += [max(written.get(name, 0), read.get(name, 0)) for name in op.writes()]
            least = max(before, default=0)
            follows = least > 0 or not shared.isdisjoint(op.writes())
            single = once[at] or (alike[at] and not self._differ[at] and follows)
            stage = least + (least % 2 != single)
            while len(self.stages) <= stage:
                self.stages.append(Stage(len(self.stages) % 2 == 1))
            self.stages[stage].ops.append(at)
            for name in op.reads():
                read[name] = max(read.get(name, 0), stage)
            for name in op.writes():
                written[name] = stage
            for name in () if single else _gradients(op):
                self.stages[stage].gradients.append(name)
                written[name] = stage + 1  # whoever reads it waits for the sum
        made = [name for stage in self.stages if not stage.once for name in self._written(stage)]
        self.private = [name for name in dict.fromkeys(made) if persistable(name)]
        self._own.update(self.private)
        self._once = {name for stage in self.stages if stage.once for name in self._written(stage)}

    def _connect(self) -> None:
        """Find which values pass from stage to stage."""
        maker: dict[str, Stage] = {}
        for stage in self.stages:
            own: set[str] = set()
            for at in stage.ops:
                op = self._block.ops[at]
                for name in op.reads():
                    if name in own or name == EMPTY or self._block._is_persistable(name):
                        continue
                    stage.takes.append(name)
                    if name in maker:
                        maker[name].gives.append(name)
                own.update(op.writes())
            maker.update(dict.fromkeys(own, stage))
            stage.takes = list(dict.fromkeys(stage.takes))
        for stage in self.stages:
            stage.gives = list(dict.fromkeys(stage.gives))

    def _written(self, stage: Stage) -> Iterable[str]:
        return (name for at in stage.ops for name in self._block.ops[at].writes() if name != EMPTY)

    def last(self, name: str) -> Stage:
        """The stage behind which a variable has its value of the step; the first one for what none writes."""
        return next(
            (stage for stage in reversed(self.stages) if name in self._written(stage)), self.stages[0]
        )

    def program(self, stage: Stage, whole: Program) -> Program:
        """A copy of `whole`, the program of which these are the stages, with the operators of one of them."""
        part = whole.clone()
        block = part.global_block()
        block.ops = [block.ops[at] for at in stage.ops]
        part._changed()
        return part


def _is_once(op: Operator) -> bool:
    return bool(int(op.attrs.get("op_role", 0)) & ONCE)


def _gradients(op: Operator) -> list[str]:
    """The gradients of parameters that an operator of the backward pass completes."""
    if not int(op.attrs.get("op_role", 0)) & OpRole.Backward:
        return []
    return list((op.attrs.get("op_role_var") or [])[1::2])
