"""dgc_momentum and dgc_clip_by_norm; numbers of Paddle 1.8.5."""

import numpy as np
import pytest

from ..harness import check


def f32(*values):
    return np.array(values, "float32")


@pytest.mark.parametrize(
    "step, nesterov, param, velocity",
    [
        (0, False, [0.966, 1.9695], [0.34, 0.305]),
        (0, True, [0.9444, 1.96005], [0.34, 0.305]),
        (3, False, [0.975, 1.9875], [0.1, 0.2]),
        (5, True, [0.975, 1.9875], [0.1, 0.2]),
    ],
)
def test_dgc_momentum(step, nesterov, param, velocity):
    given = {
        "Param": f32(1, 2), "Grad": f32(0.5, 0.25), "Velocity": f32(0.1, 0.2), "LearningRate": f32(0.1),
        "current_step": f32(step), "nranks": f32(2),
    }  # fmt: skip
    outputs = {"ParamOut": f32(*param), "VelocityOut": f32(*velocity), "Grad_out": f32(0.25, 0.125)}
    attrs = {"mu": 0.9, "use_nesterov": nesterov, "rampup_begin_step": 3.0}
    check("dgc_momentum", given, attrs, outputs, programs=False)


@pytest.mark.parametrize("step, begin, clipped", [(3, 2.0, True), (1, 2.0, False), (1, -1.0, False)])
def test_dgc_clip_by_norm(step, begin, clipped):
    x = np.arange(6, dtype="float32").reshape(2, 3)
    out = x / np.float32(np.linalg.norm(x)) if clipped else x
    attrs = {"max_norm": 1.0, "rampup_begin_step": begin}
    check("dgc_clip_by_norm", {"X": x, "current_step": f32(step)}, attrs, {"Out": out})
