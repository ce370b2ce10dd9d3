# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.static.inference import (
    load_inference_model as load_inference_model,
    save_inference_model as save_inference_model,
)
