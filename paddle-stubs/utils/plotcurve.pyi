# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.utils.plot import (
    main as main,
    plot_paddle_curve as plot_paddle_curve,
)
