"""What several cases do alike: recording results and errors, leaves, parameters. Runs on real Paddle and here."""

import numpy as np
from paddle.fluid.dygraph import to_variable


def leaf(a):
    v = to_variable(np.asarray(a, "float32"))
    v.stop_gradient = False
    return v


def put(out, label, call):
    try:
        got = call()
        if isinstance(got, tuple) and any(hasattr(v, "numpy") or isinstance(v, np.ndarray) for v in got):
            for i, v in enumerate(got):
                out[f"{label}.{i}"] = value(v)
            return got
        out[label] = value(got)
        return got
    except Exception as error:
        out[label] = "raised " + type(error).__name__


def setp(net, rng, lo=-0.5, hi=0.5):
    for p in net.parameters():
        p.set_value(rng.uniform(lo, hi, p.shape).astype("float32"))
    return net


def value(v):
    if hasattr(v, "numpy"):
        return v.numpy()
    if v is None or isinstance(v, (bool, int, float, tuple, dict)):
        return str(v)
    if isinstance(v, list) and not v:
        return "[]"
    if isinstance(v, list) and hasattr(v[0], "numpy"):
        return np.concatenate([i.numpy().ravel() for i in v])
    if isinstance(v, list) and not isinstance(v[0], str):
        return str(v)
    return v
