"""Environment variables of fluidlite: what they may hold, and errors that name them."""

from __future__ import annotations

import pytest

from fluidlite import old_scripts
from fluidlite.base import flags
from fluidlite.base.errors import DownloadError
from fluidlite.base.place import cpu_places
from fluidlite.dataset.reading import download

SWITCHES = {
    "FLUIDLITE_REQUIRE_GPU": lambda: flags.device() == "gpu",
    "FLUIDLITE_MEASURE": flags.measures_convolutions,
    "FLUIDLITE_ALLOW_TF32": flags.allow_tf32,
    "FLUIDLITE_CUDA_GRAPHS": flags.cuda_graphs,
    "FLUIDLITE_STRICT": old_scripts.strict,
}


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch):
    monkeypatch.setattr(flags, "_device", None)
    monkeypatch.setattr(flags, "_engine", None)
    monkeypatch.setattr(old_scripts, "_strict", None)


@pytest.mark.parametrize("name", SWITCHES)
def test_switches(name: str, monkeypatch) -> None:
    read = SWITCHES[name]
    monkeypatch.delenv(name, raising=False)
    unset = read()
    assert unset is (name == "FLUIDLITE_CUDA_GRAPHS")
    for text, expected in (
        ("1", True), ("true", True), ("Yes", True), ("on", True), (" 1 ", True),
        ("0", False), ("false", False), ("No", False), ("off", False), ("", unset),
    ):  # fmt: skip
        monkeypatch.setenv(name, text)
        assert read() is expected, text
    for text in ("nonsense", "2", "-1"):
        monkeypatch.setenv(name, text)
        with pytest.raises(ValueError, match=f"environment variable {name} must be 1 or 0, got '{text}'"):
            read()


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("FLUIDLITE_ENGINE", "nonsense", flags.engine),
        ("CPU_NUM", "nonsense", cpu_places),
        ("CPU_NUM", "0", cpu_places),
        ("CPU_NUM", "\N{SUPERSCRIPT TWO}", cpu_places),
        ("FLUIDLITE_OFFLINE", "nonsense", lambda: download("http://nowhere.invalid", "file", None)),
    ],
)
def test_nonsense_is_refused_by_name(name: str, text: str, read, monkeypatch) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ValueError, match=f"{name} must be .*{text}"):
        read()


def test_offline_says_no(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("FLUIDLITE_OFFLINE", "yes")
    with pytest.raises(DownloadError, match="FLUIDLITE_OFFLINE is set"):
        download("http://nowhere.invalid", str(tmp_path / "file"), None)
