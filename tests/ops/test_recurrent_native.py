"""The native kernels of recurrent operators against the reference kernels."""

import pytest

from . import in_native, test_gru, test_lstm

SIZES = [(3, [0, 3, 4, 8]), (17, [0, 2, 2, 5, 5]), (1, [0, 6]), (3, [0, 0]), (2, [0])]


@pytest.mark.parametrize("size, offsets", SIZES, ids=str)
def test_lstm_kernels(size, offsets):
    lods, attrs = {"Input": [[offsets]]}, {"is_reverse": True, "use_peepholes": False}
    in_native.check("lstm", test_lstm.operands(offsets, size, peepholes=False), attrs, lods)
    in_native.check("lstm", test_lstm.operands(offsets, size, initial=True), {}, lods)


@pytest.mark.parametrize("size, offsets", SIZES, ids=str)
def test_lstmp_kernels(size, offsets):
    lods = {"Input": [[offsets]]}
    in_native.check("lstmp", test_lstm.operands(offsets, size, 5), {"cell_clip": 0.3, "proj_clip": 0.2}, lods)
    in_native.check(
        "lstmp", test_lstm.operands(offsets, size, 5, True), {"proj_activation": "identity"}, lods
    )


@pytest.mark.parametrize("size, offsets", SIZES, ids=str)
def test_gru_kernels(size, offsets):
    lods = {"Input": [[offsets]]}
    in_native.check("gru", test_gru.operands(offsets, size), {"is_reverse": True}, lods)
    in_native.check("gru", test_gru.operands(offsets, size, True, False), {"origin_mode": True}, lods)


@pytest.mark.parametrize("size", [33, 66])
def test_wide_states(size):
    """Weights of several strips, of a depth that is cut into parts, and more rows than a part of their gradient has."""
    offsets = [0, 2, *range(9, 560, 8)]
    for op_type, made in (
        ("lstm", test_lstm.operands(offsets, size)),
        ("gru", test_gru.operands(offsets, size)),
    ):
        made["Weight"] /= size
        in_native.check(op_type, made, {}, {"Input": [[offsets]]})


@pytest.mark.parametrize("act", test_lstm.ACTS)
def test_activations(act):
    offsets = [0, 2, 3, 6]
    lods, names = {"Input": [[offsets]]}, ("gate_activation", "cell_activation", "candidate_activation")
    for name in names:
        in_native.check("lstmp", test_lstm.operands(offsets, 9, 4), {name: act}, lods)
    in_native.check("gru", test_gru.operands(offsets, 9), {"gate_activation": act, "activation": act}, lods)
