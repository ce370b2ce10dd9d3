"""Fused operators of inference passes, compared with the operators that they replace."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError, find

from ..harness import check, infer

RNG = np.random.default_rng(0)
OFFSETS = [0, 3, 4, 6]


def floats(*shape):
    return RNG.uniform(-1, 1, shape).astype("float32")


def kernel(op_type, lod, **given):
    definition = find(op_type)
    defaults = {name: definition.attrs[name] for name in definition.attrs if name in given["attrs"]}
    return definition.kernel(np, **{**given.pop("inputs"), **defaults, **given["attrs"]}, lod=lod)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("start", [False, True])
def test_fusion_gru(reverse, start):
    x, wide, state, bias = floats(6, 3), floats(3, 12), floats(4, 12), floats(1, 12)
    h0 = floats(3, 4) if start else None
    attrs = {"gate_activation": "sigmoid", "activation": "tanh", "is_reverse": reverse, "origin_mode": False}
    want = kernel(
        "gru",
        {"Input": [[np.array(OFFSETS)]]},
        inputs={"Input": x @ wide + bias, "H0": h0, "Weight": state, "Bias": None},
        attrs=attrs,
    )[3].array
    given = {"X": x, "WeightX": wide, "WeightH": state, "Bias": bias, **({"H0": h0} if start else {})}
    lods = {"X": [[OFFSETS]]}
    check("fusion_gru", given, {"is_reverse": reverse}, {"Hidden": want}, lods=lods, rtol=1e-4)
    with pytest.raises(OperatorError, match=r"Bias must be \[1, 12\]"):
        infer("fusion_gru", {**given, "Bias": bias[:, :4]})


@pytest.mark.parametrize("peepholes", [False, True])
@pytest.mark.parametrize("start", [False, True])
def test_fusion_lstm(peepholes, start):
    x, wide, state = floats(6, 3), floats(3, 16), floats(4, 16)
    bias = floats(1, 28 if peepholes else 16)
    states = {"H0": floats(3, 4), "C0": floats(3, 4)} if start else {"H0": None, "C0": None}
    attrs = {
        "use_peepholes": peepholes,
        "is_reverse": False,
        "gate_activation": "sigmoid",
        "cell_activation": "tanh",
        "candidate_activation": "tanh",
    }
    want = kernel(
        "lstm",
        {"Input": [[np.array(OFFSETS)]]},
        inputs={"Input": x @ wide, "Weight": state, "Bias": bias, **states},
        attrs=attrs,
    )
    given = {"X": x, "WeightX": wide, "WeightH": state, "Bias": bias}
    given.update({slot: value for slot, value in states.items() if value is not None})
    made = {"Hidden": want[0].array, "Cell": want[1].array}
    check("fusion_lstm", given, {"use_peepholes": peepholes}, made, lods={"X": [[OFFSETS]]}, rtol=1e-4)


@pytest.mark.parametrize(
    ("kind", "divide"), [("SUM", lambda n: 1), ("AVERAGE", lambda n: n), ("SQRT", np.sqrt)]
)
def test_pooled_sequences_side_by_side(kind, divide):
    parts, offsets = [np.abs(floats(5, 3)), np.abs(floats(3, 3))], [[0, 2, 5], [0, 1, 3]]
    pooled = [
        np.stack([x[a:b].sum(axis=0) / divide(b - a) for a, b in zip(o, o[1:], strict=False)])
        for x, o in zip(parts, offsets, strict=True)
    ]
    lods = {"X": [[o] for o in offsets], "CVM": [[]]}
    want = np.concatenate(pooled, axis=1).astype("float32")
    check("fusion_seqpool_concat", {"X": parts}, {"pooltype": kind}, {"Out": want}, lods=lods)
    for x in pooled:
        x[:, 0] = np.log(x[:, 0] + 1)
        x[:, 1] = np.log(x[:, 1] + 1) - x[:, 0]
    want = np.concatenate(pooled, axis=1).astype("float32")
    given = {"X": parts, "CVM": floats(2, 2)}
    check("fusion_seqpool_cvm_concat", given, {"pooltype": kind}, {"Out": want}, lods=lods)
    with pytest.raises(OperatorError, match="use_cvm must be true"):
        infer("fusion_seqpool_cvm_concat", given, {"use_cvm": False})


def test_fusion_seqconv_eltadd_relu():
    x, weight, bias = floats(4, 2), floats(6, 3), floats(1, 3)
    offsets = [0, 3, 4]
    padded = [np.pad(x[a:b], ((1, 1), (0, 0))) for a, b in zip(offsets, offsets[1:], strict=False)]
    windows = np.concatenate([[p[k : k + 3].ravel() for k in range(len(p) - 2)] for p in padded])
    attrs = {"contextLength": 3, "contextStart": -1}
    want = {"Out": np.maximum(windows @ weight + bias, 0)}
    given = {"X": x, "Filter": weight, "Bias": bias}
    check("fusion_seqconv_eltadd_relu", given, attrs, want, lods={"X": [[offsets]]})


@pytest.mark.parametrize("act", ["identity", "relu", "tanh", "sigmoid"])
def test_fusion_seqexpand_concat_fc(act):
    x, row, weight, bias = floats(3, 2), floats(2, 3), floats(5, 4), floats(1, 4)
    made = np.concatenate([x, row[[0, 0, 1]]], axis=1) @ weight + bias
    functions = {
        "relu": lambda v: np.maximum(v, 0),
        "tanh": np.tanh,
        "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
    }
    want = functions.get(act, lambda v: v)(made)
    lods = {"X": [[[0, 2, 3]], [[0, 1, 2]]]}
    given = {"X": [x, row], "FCWeight": weight, "FCBias": bias}
    check("fusion_seqexpand_concat_fc", given, {"fc_activation": act}, {"Out": want}, lods=lods)


def test_products_and_what_follows():
    x, weights, biases = floats(3, 4), [floats(4, 5), floats(5, 2)], [floats(1, 5), floats(1, 2)]
    first = np.maximum(x @ weights[0] + biases[0], 0)
    want = {"ReluOut": [first], "Out": np.maximum(first @ weights[1] + biases[1], 0)}
    check("fusion_repeated_fc_relu", {"X": x, "W": weights, "Bias": biases}, {}, want)
    y = floats(4, 2)
    want = {"Out": 0.5 * ((x @ y) ** 2 - (x * x) @ (y * y)), "SquaredXY": (x @ y) ** 2}
    check("fusion_squared_mat_sub", {"X": x, "Y": y}, {"scalar": 0.5}, want)
