# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.metric import (
    Accuracy as Accuracy,
    Auc as Auc,
    Metric as Metric,
    Precision as Precision,
    Recall as Recall,
    accuracy as accuracy,
)
