"""Damaged and malicious files: an error that says what is wrong, or results; never a crash. See `hostile.py`."""

import random
import warnings

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import flags, unique_name

from . import hostile

COPIES = 40
"""Damaged copies of each kind of file here; `python tests/io/hostile.py` tries more."""


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    return hostile.Samples(tmp_path_factory.mktemp("samples"))


@pytest.mark.parametrize("kind", ["model", "program", "tensor", "combined", "pickle"])
def test_damaged_files_give_an_error_or_results(samples, kind):
    found = [hostile.trial(samples, kind, number) for number in range(COPIES)]
    unclear = {number: what for number, (what, clear) in enumerate(found) if not clear}
    assert not unclear
    assert {"result"} < {what for what, _ in found}  # some are refused, and some still mean something


def test_the_good_files_are_good(samples):
    for kind, data in samples.files.items():
        samples.attempt(kind, data)


def test_damage_is_the_same_for_the_same_number(samples):
    for kind in samples.files:
        first, second = (hostile.mutant(samples, kind, random.Random(7)) for _ in range(2))
        assert first == second


IDS = (-(2**63), -(2**31), -5, -1, 0, 2, 5, 6, 2**31, 2**32 + 1, 2**62, 2**63 - 1)


READERS = {
    "embedding": lambda ids: fluid.layers.embedding(ids, [6, 4]),
    "gather": lambda ids: fluid.layers.gather(fluid.layers.fill_constant([6, 4], "float32", 1.0), ids),
    "one_hot": lambda ids: fluid.layers.one_hot(ids, 6),
    "scatter": lambda ids: fluid.layers.scatter(
        fluid.layers.fill_constant([6, 1], "float32", 1.0), ids, fluid.layers.cast(ids, "float32")
    ),
    "cross_entropy": lambda ids: fluid.layers.cross_entropy(
        fluid.layers.fill_constant_batch_size_like(ids, [-1, 6], "float32", 0.2), ids
    ),
    "softmax_with_cross_entropy": lambda ids: fluid.layers.softmax_with_cross_entropy(
        fluid.layers.fill_constant_batch_size_like(ids, [-1, 6], "float32", 0.2), ids
    ),
}


@pytest.mark.parametrize("engine", ["plan", "interpret"])
@pytest.mark.parametrize("reader", READERS)
def test_ids_out_of_range_are_errors(reader, engine):
    """Wherever they come from, and whatever they are."""
    main = fluid.Program()
    flags.set_engine(engine)
    try:
        with (
            fluid.program_guard(main, fluid.Program()),
            unique_name.guard(),
            fluid.scope_guard(fluid.Scope()),
            warnings.catch_warnings(),
        ):
            ids = fluid.data("ids", [None, 1], "int64")
            out = READERS[reader](ids)
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(fluid.default_startup_program())
            for value in IDS:
                feed = {"ids": np.array([[1], [value], [3]], "int64")}
                if 0 <= value < 6:
                    assert np.isfinite(exe.run(main, feed=feed, fetch_list=[out])[0]).all()
                    continue
                with pytest.raises(fluid.core.EnforceNotMet, match=str(value)):
                    exe.run(main, feed=feed, fetch_list=[out])
    finally:
        flags.set_engine("plan")
