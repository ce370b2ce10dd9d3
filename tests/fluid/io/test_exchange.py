"""The scripts that carry models between fluidlite and Paddle, run here on both sides."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "scripts/file_formats/exchange.py"


def exchange(way, folder, *nets):
    command = [sys.executable, "-m", "fluidlite", SCRIPT, way, folder, *nets]
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=folder.parent, check=True
    )
    return [tuple(line.split(" | ")) for line in done.stdout.splitlines()]


def test_models_of_every_form_come_back_as_they_went(tmp_path):
    folder, nets = tmp_path / "models", ("conv_bn", "while_and_cond", "Words_Adam", "Words")
    wrote = exchange("write", folder, *nets)
    assert {net for _, net, _ in wrote} == set(nets) and len(wrote) == 16
    assert {result for *_, result in wrote} == {"ok"}
    assert exchange("read", folder, *nets) == wrote


def test_a_model_that_changed_on_the_way_is_noticed(tmp_path):
    folder = tmp_path / "models"
    wrote = exchange("write", folder, "sparse_embedding")
    moved = folder / "save_persistables_a_file_each" / "sparse_embedding" / "fc_0.w_0"
    data = bytearray(moved.read_bytes())
    data[-4:] = b"\x00\x00\x80\x40"
    moved.write_bytes(data)
    differ = [
        got[:2]
        for got, before in zip(exchange("read", folder, "sparse_embedding"), wrote, strict=True)
        if got != before
    ]
    assert differ == [("save_persistables, a file each", "sparse_embedding")]
