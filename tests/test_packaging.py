"""Contents of an installation: data files, types, licences, the command, and extensions for all sources."""

import importlib.util
from importlib import metadata, resources

import pytest

import fluidlite

installed = pytest.mark.skipif(
    "fluidlite" not in {name.lower() for name in metadata.packages_distributions().get("fluidlite", ())},
    reason="the package is used from its source tree, without an installation",
)


@pytest.mark.parametrize(
    "name",
    [
        "py.typed",
        "base/names/fluid_names.txt",
        "dataset/data/README.md",
        "dataset/data/mnist/train-images-idx3-ubyte.gz",
    ],
)
def test_data_files_ship(name):
    assert resources.files("fluidlite").joinpath(name).is_file()


def test_bundled_digits_are_small():
    folder = resources.files("fluidlite").joinpath("dataset/data/mnist")
    files = {path.name: len(path.read_bytes()) for path in folder.iterdir()}
    assert len(files) == 4 and sum(files.values()) < 2_400_000


@pytest.mark.parametrize(
    "name", ["arity", "collate", "dnn", "engine", "kernels", "operands", "queue", "rng", "sizes", "threads"]
)
def test_extensions_are_built(name):
    spec = importlib.util.find_spec(f"fluidlite._ext.{name}")
    assert spec is not None and spec.origin.endswith((".so", ".pyd", ".dylib"))


@installed
def test_version_and_command():
    about = metadata.distribution("fluidlite")
    assert about.version == fluidlite.__version__
    (command,) = (entry for entry in about.entry_points if entry.group == "console_scripts")
    assert (command.name, command.value) == ("fluidlite", "fluidlite.__main__:main")
    assert command.load().__module__ == "fluidlite.__main__"


@installed
def test_metadata():
    about = metadata.metadata("fluidlite")
    assert about["License-Expression"] == "Apache-2.0 AND CC-BY-SA-3.0"
    needed = [need for need in metadata.requires("fluidlite") if "extra" not in need]
    names = sorted(need.split(">")[0] for need in needed)
    assert names == ["numpy", "onednn-cpu-gomp", "protobuf", "scipy", "tqdm"], (
        "see docs/dependencies.md before adding one"
    )
