"""Random programs with control flow: nested conditions, loops and arrays, which overwrite outer variables.

`check` compares the gradients of one with finite differences, and those of the three ways to run it with each other.
`scripts/fuzz_gradients.py` tries as many as are wanted.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

import fluidlite as fluid
from fluidlite import layers
from fluidlite.executor import plan_cache
from fluidlite.executor.failures import Unsupported
from fluidlite.executor.interpreter import segmented
from fluidlite.framework import Program, Variable, program_guard
from tests.engines import run_by

EXE = fluid.Executor(fluid.CPUPlace())
SIZE = [2, 2]
DEEPEST = 3
ARGUMENTS = ("x", "w", "table")

FEEDS = (
    {"n": 0, "p": False, "q": True},
    {"n": 1, "p": True, "q": False},
    {"n": 2, "p": True, "q": True},
    {"n": 2, "p": False, "q": False},
)

STYLES = ("everything", "branches", "loops")
"""Constructs: all; nested branches, mostly in one plan; loops of branches and loops, one plan for all iterations."""

Values = list[Variable]


def number(value: int) -> Variable:
    return layers.fill_constant([1], "int64", value)


def constant(value: float, fixed: bool) -> Variable:
    made = layers.fill_constant(SIZE, "float64", value)
    made.stop_gradient = fixed
    return made


@contextmanager
def ways(engine: str) -> Iterator[None]:
    """How programs run meanwhile: by "plan", by "interpret", or in "pieces" of one operator each."""
    kept = segmented.BlockSegments.end_of_segment, plan_cache.compile_plan
    try:
        if engine == "pieces":
            segmented.BlockSegments.end_of_segment = lambda self, begin: (
                begin + (not self._unplannable[begin])
            )
            plan_cache.compile_plan = refused
        with run_by("interpret" if engine == "interpret" else "plan"):
            yield
    finally:
        segmented.BlockSegments.end_of_segment, plan_cache.compile_plan = kept


def refused(*others: object, **more: object) -> None:
    raise Unsupported("it is cut into pieces")


class Writer:
    """Appends random operators to the current program; `text` says which, in a line for each statement."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.style = STYLES[seed % len(STYLES)]
        self.text: list[str] = []
        self.depth = 0
        self.x, self.w = (fluid.data(name, SIZE, "float64") for name in "xw")
        self.n = fluid.data("n", [1], "int64")
        self.p, self.q = (fluid.data(name, [1], "bool") for name in "pq")
        for var in (self.x, self.w):
            var.stop_gradient = False
        self.fixed = {"x", "w"}

    def note(self, text: str) -> None:
        self.text.append("  " * self.depth + text)

    @contextmanager
    def inside(self, text: str) -> Iterator[None]:
        self.note(text)
        self.depth += 1
        yield
        self.depth -= 1

    def expression(self, values: Values) -> Variable:
        a, b = self.random.choice(values), self.random.choice(values)
        kind = self.random.randrange(8)
        if kind == 7 and self.random.random() < 0.5:
            made = constant(0.3, self.random.random() < 0.5)
        elif kind == 7:
            ids = layers.fill_constant([2, 1], "int64", self.random.randrange(4))
            sparse = self.random.random() < 0.7 and self.style == "everything"
            made = layers.embedding(ids, [4, 2], is_sparse=sparse, param_attr="table", dtype="float64")
        else:
            made = (
                lambda: layers.sin(a * b),
                lambda: a + b * 0.5,
                lambda: layers.tanh(layers.matmul(a, b)),
                lambda: layers.square(a) * 0.3,
                lambda: layers.cos(a),
                lambda: a * 1.1 - b,
                lambda: layers.scale(a, 0.7),
            )[kind]()
        self.note(f"{made.name} = {made.op.type} of {a.name}, {b.name}")
        return made

    def condition(self, values: Values) -> Variable:
        kind = self.random.randrange(5)
        if kind < 2:
            made = (self.p, self.q)[kind]
        elif kind == 2:
            made = layers.less_than(self.n, number(self.random.randrange(1, 3)))
        else:
            value = layers.fill_constant([1], "float64", self.random.choice([-1.0, 0.0, 0.7]))
            made = layers.less_than(layers.reduce_sum(self.random.choice(values)), value)
        self.note(f"{made.name} decides")
        return made

    def replace(self, values: Values, written: Values) -> None:
        """Write to a variable that is there already."""
        possible = [var for var in written if var.name not in self.fixed]
        if possible:
            target = self.random.choice(possible)
            self.note(f"{target.name} is replaced by")
            layers.assign(self.expression(values), target)
            target.stop_gradient = False

    def statements(self, values: Values, arrays: list[tuple[Variable, Variable]], most: int) -> Values:
        values = list(values)
        for _ in range(self.random.randrange(1, most + 1)):
            kind = self.random.randrange(18)
            if kind <= 2:
                values.append(self.expression(values))
            elif kind <= 5:
                self.replace(values, values)
            elif kind <= 7:
                self.array(values, arrays, reads=kind == 6)
            elif self.depth < DEEPEST:
                build = self.blocks()[kind - 8]
                with self.inside(build.__name__):
                    values += build(values, arrays)
        return values

    def blocks(self) -> list[Callable[[Values, list], Values]]:
        """Builders of blocks that are allowed here, ten of them."""
        loops = [self.while_block, self.while_loop, self.static_rnn]
        branches = [self.cond, self.cond_without_results, self.switch, self.case, self.cond]
        if self.style == "everything":
            return [*loops, *branches, self.if_else, self.cond]
        if self.style == "loops" and not self.depth:
            return [*loops, *loops, *branches[:3], self.if_else]
        if self.style == "loops":
            return [*loops[:2], *branches[:2], self.if_else, *branches]
        return [*branches, *branches[:4], self.if_else]

    def array(self, values: Values, arrays: list[tuple[Variable, Variable]], reads: bool) -> None:
        if not arrays:
            return
        array, index = self.random.choice(arrays)
        if reads:
            values.append(layers.array_read(array, index))
            self.note(f"{values[-1].name} = {array.name}[{index.name}]")
            return
        if self.random.random() < 0.5:
            layers.increment(index)
            self.note(f"{index.name} += 1")
        self.note(f"{array.name}[{index.name}] is")
        layers.array_write(self.expression(values), index, array)

    def trip_count(self) -> Variable:
        return self.n if self.random.random() < 0.6 else number(2)

    def while_block(self, values: Values, arrays: list) -> Values:
        i, last = number(0), self.trip_count()
        cond = layers.less_than(i, last)
        with layers.While(cond).block():
            self.statements(values, arrays, 5)
            layers.increment(i)
            layers.less_than(i, last, cond=cond)
        return []

    def while_loop(self, values: Values, arrays: list) -> Values:
        last = self.trip_count()
        start = [layers.scale(self.random.choice(values), 1.0) for _ in range(self.random.randrange(1, 3))]

        def body(i: Variable, *carried: Variable) -> list[Variable]:
            made = self.statements([*values, *carried], arrays, 4)
            after = i + 1 if self.random.random() < 0.5 else layers.increment(i)
            return [after] + [self.expression([*made, *carried]) for _ in carried]

        return layers.while_loop(lambda i, *_: layers.less_than(i, last), body, [number(0), *start])[1:]

    def static_rnn(self, values: Values, arrays: list) -> Values:
        """Two steps, which may replace what is their own only."""
        inputs = layers.stack([self.random.choice(values) for _ in range(2)])
        start, outer = layers.scale(self.random.choice(values), 1.0), self.fixed
        self.fixed = outer | {var.name for var in values}
        rnn = layers.StaticRNN()
        with rnn.step():
            word, state = rnn.step_input(inputs), rnn.memory(init=start)
            self.fixed |= {word.name, state.name}
            if self.style != "branches":
                index = number(0)
                arrays = [(layers.array_write(layers.scale(word, 0.7), index), index)]
            made = self.statements([*values, word, state, layers.scale(state, 0.9)], arrays, 4)
            rnn.update_memory(state, layers.tanh(self.expression([*made, state])))
            rnn.step_output(self.expression([*made, word]))
        self.fixed = outer
        return [layers.reduce_sum(rnn(), dim=0)]

    def branch(self, values: Values, arrays: list, target: Variable | None = None) -> Callable[[], Variable]:
        def build() -> Variable:
            with self.inside("branch"):
                made = self.expression(self.statements(values, arrays, 3))
                if target is not None:
                    layers.assign(made, target)
                return made

        return build

    def cond(self, values: Values, arrays: list) -> Values:
        condition = self.condition(values)
        return [layers.cond(condition, self.branch(values, arrays), self.branch(values, arrays))]

    def cond_without_results(self, values: Values, arrays: list) -> Values:
        """Branches that only write, to a variable of their own or to those around; or only one of them."""
        target = self.target()
        build = [self.branch(values, arrays, target) for _ in range(2)]
        both = target is not None or self.random.random() < 0.5
        condition = self.condition(values)
        layers.cond(condition, lambda: build[0]() and None, (lambda: build[1]() and None) if both else None)
        return self.declared(target)

    def target(self) -> Variable | None:
        """A variable for branches to write to; plans look whether one has done so."""
        wanted = self.random.random() < (0.5 if self.style == "everything" else 0.1)
        return layers.create_tensor("float64") if wanted else None

    def declared(self, target: Variable | None) -> Values:
        if target is None:
            return []
        return [layers.reshape(target, SIZE)]

    def switch(self, values: Values, arrays: list) -> Values:
        target = self.target()
        conditions = [self.condition(values) for _ in range(self.random.randrange(1, 3))]
        with layers.Switch() as switch:
            for condition in conditions:
                with switch.case(condition):
                    self.branch(values, arrays, target)()
            if target is not None or self.random.random() < 0.5:
                with switch.default():
                    self.branch(values, arrays, target)()
        return self.declared(target)

    def case(self, values: Values, arrays: list) -> Values:
        pairs = [(self.condition(values), self.branch(values, arrays)) for _ in range(2)]
        return [layers.case(pairs, self.branch(values, arrays))]

    def if_else(self, values: Values, arrays: list) -> Values:
        rows = layers.reduce_sum(self.random.choice(values), dim=1, keep_dim=True)
        choice = layers.IfElse(layers.less_than(rows, layers.fill_constant([2, 1], "float64", 0.1)))
        for block in (choice.true_block, choice.false_block):
            with block(), self.inside("rows"):
                a, b = (choice.input(self.random.choice(values)) for _ in range(2))
                made = (lambda: a * b, lambda: layers.sin(a), lambda: layers.square(a) - b)  # noqa: B023
                choice.output(self.random.choice(made)())
                if self.random.random() < 0.5:
                    self.replace(values, values)
        return [layers.reshape(choice()[0], SIZE)]


class Decider:
    """A random program, its loss and the gradients of that by the names of `ARGUMENTS`."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.main, startup = Program(), Program()
        with program_guard(self.main, startup), fluid.unique_name.guard():
            writer = Writer(seed)
            ids = layers.fill_constant([2, 1], "int64", 1)
            sparse = writer.style == "everything"
            rows = layers.embedding(ids, [4, 2], is_sparse=sparse, param_attr="table", dtype="float64")
            first = [writer.x, writer.w, layers.scale(writer.x, 1.0), layers.sin(writer.w), rows]
            arrays = []
            if sparse:
                index = number(0)
                arrays.append((layers.array_write(layers.scale(writer.x, 0.5), index), index))
                first.append(
                    layers.create_global_var(SIZE, 0.0, "float64", persistable=True, name="persistable")
                )
                first[-1].stop_gradient = False
                layers.assign(layers.cos(writer.w), first[-1])
            values = writer.statements(first, arrays, 6)
            values = writer.statements(values, arrays, 6)
            parts = [layers.reduce_sum(var) for var in (values[-1], *first[2:])]
            parts += [layers.reduce_sum(layers.array_read(*each)) for each in arrays]
            self.loss = layers.sums(parts)
            self.gradients = self._differentiate(writer)
        self.text = "\n".join(writer.text)
        self.in_pieces = self.main.clone()
        self.scope = fluid.Scope()
        EXE.run(startup, scope=self.scope)
        values = np.random.RandomState(seed)
        self.at = {name: values.uniform(-0.8, 0.8, SIZE) for name in "xw"}
        self.at["table"] = values.uniform(-0.8, 0.8, [4, 2])
        self.direction = {name: values.uniform(-1, 1, value.shape) for name, value in self.at.items()}

    def _differentiate(self, writer: Writer) -> list[tuple[str, Variable, float]]:
        """The gradients' variables: of what, and how many times that they hold."""
        block = self.main.global_block()
        of = [writer.x, writer.w, block.var("table")]
        found = []
        if writer.random.random() < 0.3:
            fluid.backward.append_backward(self.loss)
            names = [f"{name}@GRAD" for name in ARGUMENTS]
            made: Sequence[Variable | None] = [
                block.var(name) if block.has_var(name) else None for name in names
            ]
            found += [(name, var, 1.0) for name, var in zip(ARGUMENTS, made, strict=True)]
        weights = [None, 2.0] if not found and writer.random.random() < 0.3 else [None]
        for weight in weights:
            given = None if weight is None else [layers.fill_constant([1], "float64", weight)]
            made = fluid.gradients([self.loss], of, target_gradients=given) or [None] * 3
            found += [(name, var, weight or 1.0) for name, var in zip(ARGUMENTS, made, strict=True)]
        return found

    def run(self, feed: dict, step: float = 0.0, engine: str = "plan") -> list[np.ndarray]:
        """The loss and the gradients, `step` along the program's direction."""
        at = {name: value + step * self.direction[name] for name, value in self.at.items()}
        self.scope.find_var("table").get_tensor().set(at.pop("table"), fluid.CPUPlace())
        feed = {name: np.array([value]) for name, value in feed.items()}
        with ways(engine):
            main = self.in_pieces if engine == "pieces" else self.main
            names = [self.loss.name, *(var.name for _, var, _ in self.gradients if var is not None)]
            return [*map(np.array, EXE.run(main, {**feed, **at}, names, scope=self.scope))]

    def slopes(self, feed: dict, engine: str) -> tuple[float, list[dict[str, np.ndarray]]]:
        """The loss, and what each pass says about its gradients."""
        loss, *values = self.run(feed, engine=engine)
        left = iter(values)
        all_of_them = [
            (name, np.zeros_like(self.at[name]) if var is None else next(left) / weight)
            for name, var, weight in self.gradients
        ]
        passes = [dict(all_of_them[k : k + 3]) for k in range(0, len(all_of_them), 3)]
        return float(loss.sum()), passes

    def numeric(self, feed: dict, step: float) -> float:
        """The slope of the loss in the program's direction."""
        above, below = (float(self.run(feed, sign * step)[0].sum()) for sign in (1, -1))
        return (above - below) / (2 * step)


def check(seed: int, feeds: Sequence[dict] = FEEDS) -> tuple[str, int]:
    """Check the gradients of a random program: a message ("" if they agree), and the number of runs compared.

    Where finite differences of two sizes disagree, a condition changes nearby or the slope is too steep to be measured.
    """
    program = Decider(seed)
    compared = 0
    for at, feed in enumerate(feeds):
        loss, planned = program.slopes(feed, "plan")
        message = f"seed {seed}, {feed}:\n{program.text}\n"
        slow = ["pieces"] if at == seed % len(feeds) else []  # making those takes a while
        for way in ("interpret", *slow):
            found, others = program.slopes(feed, way)
            if not np.allclose(loss, found, rtol=1e-9, equal_nan=True):
                return f"{message}loss {loss} and, by {way}, {found}", compared
            for one, other in zip(planned, others, strict=True):
                for name in ARGUMENTS:
                    if not np.allclose(one[name], other[name], rtol=1e-7, atol=1e-9, equal_nan=True):
                        return f"{message}{name}@GRAD {one[name]} and, by {way}, {other[name]}", compared
        wide, narrow = program.numeric(feed, 1e-5), program.numeric(feed, 3e-6)
        tolerance = 1e-6 * max(1.0, abs(loss), abs(narrow) * 100)
        if not abs(wide - narrow) <= tolerance:
            continue
        compared += 1
        for grads in planned:
            slope = sum(float((grads[name] * program.direction[name]).sum()) for name in ARGUMENTS)
            if not abs(slope - narrow) <= 2 * tolerance:
                return f"{message}slope {slope}, by finite differences {narrow}", compared
    return "", compared
