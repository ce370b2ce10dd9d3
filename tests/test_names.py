"""Every name of Fluid 1.8 can be had from the module that has it there, and docs/names.md says what it is here."""

from pathlib import Path

import pytest

from fluidlite.base import missing
from fluidlite.base.names import fluid_modules

SCRIPT = Path(__file__).parents[1] / "scripts" / "name_table.py"


def test_every_name_of_fluid_can_be_had():
    lacking = []
    for name, parts in fluid_modules.listed().items():
        module = missing.module_here(name) or missing.module_in_place(name)
        lacking += [f"{name}.{part}" for part in parts if not hasattr(module, part)]
    assert lacking == []


def test_every_module_of_fluid_can_be_imported(python, tmp_path):
    script = tmp_path / "script.py"
    names = [name if name.startswith("paddle") else f"paddle.{name}" for name in fluid_modules.listed()]
    script.write_text("".join(f"import {name}\n" for name in sorted(names)))
    done = python("-W", "ignore", "-m", "fluidlite", script)
    assert done.returncode == 0, done.stderr


def test_modules_of_fluid_have_their_names_without_an_import_of_their_own(python, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("""
import paddle.fluid as fluid

kinds = [getattr(fluid.dataset, name) is getattr(fluid, name) for name in ("DatasetFactory", "QueueDataset")]
print(kinds, fluid.dataset.DatasetBase in fluid.QueueDataset.__mro__, fluid.dataset.InMemoryDataset.__name__)
""")
    done = python("-m", "fluidlite", script)
    assert done.stdout == "[True, True] True InMemoryDataset\n", done.stderr


@pytest.mark.skipif(not SCRIPT.exists(), reason="needs the source tree")
def test_table_of_names_is_up_to_date(python):
    done = python(SCRIPT, "--check")
    assert done.returncode == 0, f"{done.stderr}docs/names.md: run scripts/name_table.py"
