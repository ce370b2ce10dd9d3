"""The samples of public names that `docs/samples/` keeps: read, run, and compared with what they should print.

usage: python scripts/site/samples.py [--record] [FILE ...]    (all of docs/samples without files)

`--record` writes down what the samples print. It runs under real Paddle 1.8.5 too, whose numbers are the ones to
record.
"""

import argparse
import contextlib
import importlib
import io
import math
import os
import re
import shutil
import sys
import tempfile
import traceback
import warnings
from collections import namedtuple
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "samples"

# What the samples that import it are left out without: nobody else here needs it.
OPTIONAL = frozenset({"cv2", "matplotlib", "mpi4py", "scipy", "yaml"})

# The names that it is for, what stands before it in its file's first block, its own code, and what that prints.
Sample = namedtuple("Sample", "names setup code printed")

_SECTION = re.compile(
    r"^## (.+)\n\n```python\n(.*?)\n```\n(?:\n```text\n(.*?)\n?```\n)?", re.DOTALL | re.MULTILINE
)
_SETUP = re.compile(r"^```python\n(.*?)\n```\n", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)(?![\w])")


def files():
    """The files of samples."""
    return sorted(path for path in FOLDER.glob("*.md") if path.stem != "without")


def read(path):
    """The samples of a file: sections whose headings are names."""
    head, *rest = re.split(r"(?m)^(?=## )", path.read_text(encoding="utf8"))
    setup = _SETUP.search(head)
    found = []
    for text in rest:
        section = _SECTION.fullmatch(text.rstrip("\n") + "\n")
        if not section:
            raise ValueError(
                f"{path.name}: {text.splitlines()[0]} is not a sample: code, then what it prints"
            )
        names = re.findall(r"`([\w.]+)`", section[1])
        unused = [name for name in names if not re.search(rf"\b{name.split('.')[-1]}\b", section[2])]
        if unused:
            raise ValueError(f"{path.name}: the sample of {', '.join(unused)} does not use it")
        found.append(Sample(names, setup[1] if setup else "", section[2], section[3] or ""))
    return found


def run(sample):
    """What a sample prints, in programs and a folder of its own."""
    import numpy as np

    fluid = importlib.import_module("paddle.fluid")
    space = {"__name__": "__main__"}
    shown = np.get_printoptions()
    home = os.getcwd()
    output = io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.callback(np.set_printoptions, **shown)
        stack.enter_context(contextlib.redirect_stdout(output))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        if "paddle.fluid" in sample.setup:  # layers of Paddle 2.0 would belong to the program
            stack.enter_context(fluid.program_guard(fluid.Program(), fluid.Program()))
        stack.enter_context(fluid.unique_name.guard())
        stack.enter_context(fluid.scope_guard(fluid.Scope()))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.callback(os.chdir, home)
        stack.callback(fluid.disable_dygraph)
        os.chdir(folder)
        np.set_printoptions(precision=4, suppress=True, linewidth=100)
        np.random.seed(0)
        # In a file, where functions of it find their source.
        path = Path(folder) / "sample.py"
        path.write_text(sample.setup + "\n" + sample.code, encoding="utf8")
        exec(compile(path.read_text(encoding="utf8"), str(path), "exec"), space)
    return "\n".join(line.rstrip() for line in output.getvalue().strip("\n").split("\n"))


def differ(expected, got):
    """Whether two outputs differ in words, or in numbers by more than their four digits."""
    if _NUMBER.sub("#", expected).split() != _NUMBER.sub("#", got).split():
        return True
    return not all(map(_near, _NUMBER.findall(expected), _NUMBER.findall(got)))


def _near(one, other):
    return one == other or math.isclose(float(one), float(other), rel_tol=1e-3, abs_tol=2e-4)


def failures(path):
    """What is wrong with the samples of a file, in words."""
    wrong = []
    for sample, got in _outputs(path, wrong):
        if differ(sample.printed, got):
            name = ", ".join(sample.names)
            wrong.append(f"{path.name}: {name} should print\n{sample.printed}\nand prints\n{got}\n")
    return wrong


def _outputs(path, wrong):
    """The samples of a file that run, and what each prints; of the others `wrong` gets the errors."""
    for sample in read(path):
        if "import mpi4py" in sample.code and not _starts_processes():
            continue
        try:
            yield sample, run(sample)
        except Exception as error:
            if isinstance(error, ModuleNotFoundError) and error.name in OPTIONAL:
                continue
            wrong.append(f"{path.name}: {', '.join(sample.names)} fails:\n{traceback.format_exc(limit=-1)}")


def _starts_processes():
    """Whether there is what starts several processes."""
    places = [os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]
    return shutil.which("mpiexec", path=os.pathsep.join(places)) is not None


def record(path):
    """Write down what the samples of a file print; what failed."""
    text = path.read_text(encoding="utf8")
    wrong = []
    for sample, got in _outputs(path, wrong):
        if differ(sample.printed, got) or not sample.printed:
            code = f"```python\n{sample.code}\n```\n"
            old = f"{code}\n```text\n{sample.printed}\n```\n" if sample.printed else code
            assert text.count(old) == 1, sample.names
            text = text.replace(old, f"{code}\n```text\n{got}\n```\n" if got else code)
            path.write_text(text, encoding="utf8")
    return wrong


def main():
    """Run or record the samples of files; the exit status."""
    command = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    command.add_argument("--record", action="store_true", help="write down what they print")
    command.add_argument("files", nargs="*", type=Path, metavar="FILE")
    chosen = command.parse_args()
    with contextlib.suppress(ImportError):
        importlib.import_module("fluidlite.as_paddle")
    wrong = []
    for path in chosen.files or files():
        wrong.extend((record if chosen.record else failures)(path))
    print(*wrong, sep="\n", end="")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
