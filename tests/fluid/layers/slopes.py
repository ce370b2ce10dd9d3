"""Gradients of programs against differences of their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluidlite.base.place import CPUPlace
from fluidlite.executor import Executor, LoDTensor, Scope, scope_guard
from fluidlite.framework import Program, Variable
from fluidlite.framework.gradients.backward import gradients


def ragged(rows: Any, *lengths: Sequence[int]) -> LoDTensor:
    """Rows in sequences of these lengths, outermost level first."""
    tensor = LoDTensor()
    tensor.set(np.asarray(rows), CPUPlace())
    tensor.set_recursive_sequence_lengths(list(lengths))
    return tensor


def runner(programs: Sequence[Program]) -> Callable[..., list[LoDTensor]]:
    """Run the startup program; returns `run(feed, fetch)`, which runs the main program."""
    scope, executor = Scope(), Executor(CPUPlace())
    with scope_guard(scope):
        executor.run(programs[1])

    def run(feed: dict[str, Any], fetch: Sequence[Any]) -> list[LoDTensor]:
        with scope_guard(scope):
            return executor.run(programs[0], feed=feed, fetch_list=list(fetch), return_numpy=False)

    run.scope = scope  # type: ignore[attr-defined]
    return run


def check_slopes(
    programs: Sequence[Program],
    loss: Variable,
    wanted: Sequence[Variable],
    feed: dict[str, Any],
    *,
    step: float = 1e-5,
    rtol: float = 1e-5,
    atol: float = 1e-8,
) -> list[np.ndarray]:
    """Assert that the gradients of `loss` ([1], float64) for fed variables or parameters are its central differences.

    Returns the gradients.
    """
    slopes = gradients(loss, list(wanted))
    assert all(slope is not None for slope in slopes)
    run = runner(programs)
    found = [np.array(value) for value in run(feed, slopes)]
    for var, slope in zip(wanted, found, strict=True):
        fed = var.name in feed
        with scope_guard(run.scope):  # type: ignore[attr-defined]
            held = feed[var.name] if fed else run.scope.find_var(var.name).get_tensor()  # type: ignore[attr-defined]
        base = np.array(held)

        def result(array: np.ndarray, var: Variable = var, held: Any = held, fed: bool = fed) -> float:
            if fed:
                lengths = held.recursive_sequence_lengths() if isinstance(held, LoDTensor) else []
                return float(np.array(run({**feed, var.name: ragged(array, *lengths)}, [loss])[0])[0])
            held.set(array, CPUPlace())
            return float(np.array(run(feed, [loss])[0])[0])

        want = np.zeros_like(base)
        for at in np.ndindex(base.shape):
            sides = []
            for delta in (step, -step):
                moved = base.copy()
                moved[at] += delta
                sides.append(result(moved))
            want[at] = (sides[0] - sides[1]) / (2 * step)
        if not fed:
            held.set(base, CPUPlace())
        np.testing.assert_allclose(slope, want, rtol=rtol, atol=atol, err_msg=f"gradient for {var.name}")
    return found
