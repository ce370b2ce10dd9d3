"""The samples of public names print what docs/samples says, which real Paddle has printed where it has the names."""

import importlib.util

import pytest

import fluidlite.as_paddle  # noqa: F401 - samples import paddle

from .test_docs import ROOT, source_tree

pytestmark = source_tree
SCRIPT = ROOT / "scripts" / "site" / "samples.py"
FILES = sorted(path for path in (ROOT / "docs" / "samples").glob("*.md") if path.stem != "without")


RIGHT = """\
```python
import numpy
```

## `numpy.ones`

```python
print(numpy.ones(2) / 3)
```

```text
[0.3333 0.3333]
```
"""


@pytest.fixture(scope="module")
def samples():
    spec = importlib.util.spec_from_file_location("samples", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_samples_print_what_they_should(samples, path):
    wrong = samples.failures(path)
    assert not wrong, "\n".join(wrong)


def test_wrong_samples_are_noticed(samples, tmp_path):
    path = tmp_path / "wrong.md"
    path.write_text(RIGHT)
    assert samples.failures(path) == []
    path.write_text(RIGHT.replace("0.3333]", "0.3343]"))
    assert "should print" in samples.failures(path)[0]
    path.write_text(RIGHT.replace("/ 3", "/ nothing"))
    assert "NameError" in samples.failures(path)[0]
    path.write_text(RIGHT.replace("`numpy.ones`", "`numpy.ones`, `numpy.zeros`"))
    with pytest.raises(ValueError, match="the sample of numpy.zeros does not use it"):
        samples.read(path)


def test_recording(samples, tmp_path):
    path = tmp_path / "new.md"
    path.write_text("# New\n\n## `math.sqrt`\n\n```python\nimport math\n\nprint(math.sqrt(4))\n```\n")
    assert samples.record(path) == [] and samples.read(path)[0].printed == "2.0"
    assert samples.failures(path) == []


def test_every_name_has_a_sample_or_a_reason(python):
    code = f"""
import sys
sys.path.insert(0, {str(SCRIPT.parent)!r})
import fluidlite.as_paddle, reference
print(*reference.run_samples(), *reference.without_sample(), sep="\\n")  # as the site is built
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "\n", (
        f"give each a sample in docs/samples, or a reason in without.md:\n{done.stdout}"
    )


def test_samples_of_docstrings_run_and_leave_the_mode_as_it_was(python):
    code = f"""
import sys
sys.path.insert(0, {str(SCRIPT.parent)!r})
import fluidlite.as_paddle, reference, samples
print(reference.run_samples(), samples.failures(samples.FOLDER / "paddle_tensors.md"))
"""
    done = python("-c", code)
    assert (done.returncode, done.stdout) == (0, "[] []\n"), done.stderr
