"""quantize, dequantize, requantize, lookup_table_dequant; numbers of Paddle 1.8.5."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer


def test_quantize():
    x = np.array([[1.2, -0.5, 0.3, 200, 0.005, 0.015, -0.025]], "float32")
    signed = np.array([[120, -50, 30, 127, 0, 2, -2]], "int8")
    check("quantize", {"Input": x}, {"Scale": 100.0, "is_negative_input": True}, {"Output": signed})
    unsigned = np.array([[120, 0, 30, 255, 0, 2, 0]], "uint8")
    check("quantize", {"Input": x}, {"Scale": 100.0, "is_negative_input": False}, {"Output": unsigned})
    with pytest.raises(OperatorError, match="must be float32"):
        infer("quantize", {"Input": x.astype("int32")}, {})


def test_dequantize():
    x = np.array([[1, -5, 100, 127]], "int8")
    check(
        "dequantize", {"Input": x}, {"Scale": 50.0}, {"Output": np.array([[0.02, -0.1, 2, 2.54]], "float32")}
    )
    check(
        "dequantize",
        {"Input": np.array([227], "uint8")},
        {"Scale": 50.0},
        {"Output": np.array([4.54], "float32")},
    )
    for wrong in ({"Scale": 0.0}, {}):
        with pytest.raises(OperatorError, match=r"must (not be 0|be int8)"):
            infer("dequantize", {"Input": x if wrong else x.astype("float32")}, wrong)


@pytest.mark.parametrize(
    "scale, wanted", [(25.0, [0, -2, 50, 64, 2, -64, 1, 4]), (75.0, [2, -8, 127, 127, 4, -128, 3, 10])]
)
def test_requantize(scale, wanted):
    x = np.array([1, -5, 100, 127, 3, -128, 2, 7], "int8").reshape(1, 1, 2, 4)
    attrs = {"Scale_in": 50.0, "Scale_out": scale}
    check("requantize", {"Input": x}, attrs, {"Output": np.array(wanted, "int8").reshape(x.shape)})


@pytest.mark.parametrize("padding", [-1, 1])
def test_lookup_table_dequant(padding):
    numbers = np.array([[0, 1, 2, 3, 128, 255, 64, 7], [3, 2, 1, 0, 5, 6, 7, 8], [255] * 8], "uint8")
    ends = np.array([[0.5, 2.5], [-1, 1], [0, 255]], "float32")
    table = np.concatenate([ends, numbers.view("float32")], axis=1)
    rows = ends[:, :1] + (ends[:, 1:] - ends[:, :1]) / 256 * numbers
    ids = np.array([[0], [2], [1], [0]], "int64")
    out = rows[ids[:, 0]]
    out[ids[:, 0] == padding] = 0
    check("lookup_table_dequant", {"W": table, "Ids": ids}, {"padding_idx": padding}, {"Out": out})
    with pytest.raises(OperatorError, match="more than 2 columns"):
        infer("lookup_table_dequant", {"W": ends, "Ids": ids}, {})
