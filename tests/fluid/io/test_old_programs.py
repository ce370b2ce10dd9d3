"""Programs of older Paddles: attributes that they did not have yet get the defaults of 1.8.5, whatever the version."""

import json
from pathlib import Path

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import unique_name
from fluidlite.base.storage.messages import messages
from fluidlite.ops import registry

DEFAULTS = json.loads(Path(__file__).with_name("attr_defaults.json").read_text(encoding="utf8"))
"""Defaults in Paddle 1.8.5 of attributes missing in an operator's description: {type: {attribute: value}}."""

OTHERS = {
    *((op, "use_cudnn") for op in ("affine_grid", "grid_sampler")),  # which library computes
    *(
        (f"{how}_interp", f"out_{dim}")
        for how in ("bicubic", "bilinear", "nearest", "trilinear")
        for dim in "dhw"
    ),
    *(
        (f"{how}_interp", "interp_method") for how in ("bicubic", "nearest", "trilinear")
    ),  # follows from the type
    ("conv3d_transpose", "data_format"),  # NCHW and NCDHW are the same there
    ("create_double_buffer_reader", "place"),
    *((op, "epmap") for op in ("send", "checkpoint_notify")),  # no server is where none is named
    *((op, "endpoints") for op in ("send_barrier", "fetch_barrier", "distributed_lookup_table")),
    ("distributed_lookup_table", "table_names"),
}
"""Attributes whose defaults differ here without another result, or are none that a program could be run with."""


def test_defaults_are_those_of_fluid():
    different = {}
    for op, attrs in DEFAULTS.items():
        ours = registry.find(op).attrs
        for name, value in attrs.items():
            mine = ours[name]
            same = mine == pytest.approx(value, rel=1e-6) if isinstance(value, float) else mine == value
            if not same and (op, name) not in OTHERS:
                different[op, name] = (mine, value)
    assert different == {} and sum(map(len, DEFAULTS.values())) > 700


def without_later_attributes(folder):
    """The description of a saved program without its version and the attributes that have Fluid's defaults."""
    message = messages().ProgramDesc()
    message.ParseFromString((folder / "__model__").read_bytes())
    message.ClearField("version")
    removed = 0
    for op in message.blocks[0].ops:
        for attr in list(op.attrs):
            default = DEFAULTS.get(op.type, {}).get(attr.name, ...)
            given = [getattr(attr, field) for field in ("i", "f", "s", "b", "l") if attr.HasField(field)]
            if attr.name.startswith("op_") or given and given[0] == default:
                op.attrs.remove(attr)
                removed += 1
    assert removed > 40
    return message


def with_older_operators(message):
    """Operators as they were before they kept the shape of their input; how many there were."""
    renamed = 0
    for op in message.blocks[0].ops:
        if op.type in ("reshape2", "transpose2", "flatten2", "squeeze2", "unsqueeze2"):
            op.type = op.type[:-1]
            del op.outputs[[output.parameter for output in op.outputs].index("XShape")]
            renamed += 1
        for inputs in list(op.inputs):
            if not inputs.arguments:
                op.inputs.remove(inputs)
    return renamed


def pictures():
    L = fluid.layers
    image = fluid.data("image", [None, 3, 8, 8])
    hidden = L.batch_norm(L.conv2d(image, 4, 3, padding=1), act="relu")
    hidden = L.pool2d(hidden, 2, "avg", 2)
    hidden = L.concat([L.flatten(hidden), L.reshape(L.transpose(hidden, [0, 2, 3, 1]), [-1, 64])], axis=1)
    guess = L.softmax(L.layer_norm(L.fc(hidden, 5)) * 2.0)
    return {"image": np.random.default_rng(0).random((2, 3, 8, 8), np.float32)}, [guess], 3


def sequences():
    L = fluid.layers
    words = L.data("words", [1], dtype="int64", lod_level=1)
    rows = L.fc(L.embedding(words, [20, 8]), 16)
    hidden = L.concat([L.dynamic_lstm(rows, 16)[0], L.dynamic_gru(L.fc(rows, 12), 4)], axis=1)
    kinds = ("max", "last", "average", "sqrt")
    text = L.concat([L.sequence_pool(hidden, kind) for kind in kinds], axis=1)
    text = L.squeeze(L.unsqueeze(text, [1]), [1])
    scores, places = L.topk(L.softmax(L.fc(L.dropout(text, 0.3, is_test=True), 6)), 3)
    tagged = L.sequence_softmax(L.sequence_conv(rows, 1, 3))
    numbers = np.arange(9).reshape(9, 1) % 7
    given = fluid.create_lod_tensor(numbers.astype("int64"), [[2, 3, 4]], fluid.CPUPlace())
    return {"words": given}, [scores, places, tagged, L.cos_sim(text, text)], 2


def boxes():
    L = fluid.layers
    image = fluid.data("image", [None, 3, 16, 16])
    small = L.conv2d(image, 6, 3, stride=4, padding=1, act="relu")
    small = L.image_resize(small, [8, 8], resample="BILINEAR")
    prior, variances = L.prior_box(small, image, [4.0], aspect_ratios=[1.0, 2.0], clip=True)
    moves = L.reshape(L.transpose(L.conv2d(small, 8, 1), [0, 2, 3, 1]), [0, -1, 4])
    scores = L.reshape(L.transpose(L.conv2d(small, 6, 1), [0, 2, 3, 1]), [0, -1, 3])
    flat = [L.reshape(one, [-1, 4]) for one in (prior, variances)]
    found = L.detection_output(moves, scores, *flat, score_threshold=0.3, nms_threshold=0.4)
    return {"image": np.random.default_rng(1).random((2, 3, 16, 16), np.float32)}, [found], 6


@pytest.mark.parametrize("network", [pictures, sequences, boxes])
def test_programs_without_version_and_defaults_predict_the_same(network, tmp_path):
    """As an old Paddle would have saved them."""
    main, startup = fluid.Program(), fluid.Program()
    startup.random_seed = 3
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.program_guard(main, startup), unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        feed, results, least = network()
        exe.run(startup)
        fluid.io.save_inference_model(str(tmp_path), list(feed), results, exe, main)

    def predicted():
        with fluid.scope_guard(fluid.Scope()):
            program, _, fetches = fluid.io.load_inference_model(str(tmp_path), exe)
            found = exe.run(program, feed=feed, fetch_list=fetches, return_numpy=False)
            return [np.array(one) for one in found]

    def same(found):
        return all(map(np.array_equal, found, expected)) and len(found) == len(expected)

    expected = predicted()
    assert all(one.size > 1 for one in expected)
    message = without_later_attributes(tmp_path)
    (tmp_path / "__model__").write_bytes(message.SerializeToString())
    assert same(predicted())

    assert with_older_operators(message) >= least
    for version in (0, 1005000, 1006003, 1007002, 2000000):  # before and after 1.8, which loads all
        message.version.version = version
        (tmp_path / "__model__").write_bytes(message.SerializeToString())
        assert same(predicted())
