"""The eight chapters of `examples/book` print what Paddle 1.8.5 prints, from the seeds on."""

import re
from pathlib import Path

import numpy as np
import pytest

from .recorded import sections

BOOK = Path(__file__).parents[1] / "examples" / "book"
NUMBER = re.compile(r"-?\d+\.\d+")  # words, tags and counts stay text: they must be the same
STEPS = {
    "c06_understand_sentiment": 20
}  # after more steps, rounding shows in the losses of the stacked LSTMs

# What real Paddle 1.8.5 printed for the same scripts on a CPU.
RECORDED = sections(Path(__file__).with_suffix(".txt"))


@pytest.mark.parametrize("chapter", sorted(path.stem for path in BOOK.glob("*.py")))
def test_prints_what_paddle_prints(python, chapter):
    done = python("-m", "fluidlite", BOOK / f"{chapter}.py", *([STEPS[chapter]] if chapter in STEPS else []))
    assert done.returncode == 0, done.stderr
    recorded = RECORDED[chapter]
    assert NUMBER.sub("#", done.stdout) == NUMBER.sub("#", recorded)
    found, wanted = (np.array(NUMBER.findall(text), "float64") for text in (done.stdout, recorded))
    np.testing.assert_allclose(found, wanted, rtol=2e-4)
    losses = [float(text) for text in re.findall(r"loss (\S+?),?\s", done.stdout)]
    assert losses[-1] < losses[0]  # of new samples, at the end
