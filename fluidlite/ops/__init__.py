"""The operators: importing this package declares them all."""

from . import (  # noqa: F401
    clicks,
    contrib,
    control_flow,
    detection,
    distributed,
    fused,
    loss,
    math,
    metrics,
    nn,
    optimizers,
    program,
    quantization,
    rnn,
    sequences,
    tensor,
    vision,
)
