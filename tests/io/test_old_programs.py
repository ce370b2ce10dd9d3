"""Programs of older Paddles: attributes that they did not have yet get the defaults of 1.8.5, whatever the version."""

import json
from pathlib import Path

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import unique_name
from fluidlite.framework.serialization.messages import messages
from fluidlite.ops import registry

DEFAULTS = json.loads(Path(__file__).with_name("attr_defaults.json").read_text(encoding="utf8"))
"""What Paddle 1.8.5 gives attributes that an operator's description leaves out: {type: {attribute: value}}."""

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


def test_a_program_without_version_and_defaults_predicts_the_same(tmp_path):
    """A network of pictures as an old Paddle would have saved it."""
    main, startup = fluid.Program(), fluid.Program()
    startup.random_seed = 3
    exe = fluid.Executor(fluid.CPUPlace())
    L = fluid.layers
    with fluid.program_guard(main, startup), unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        image = fluid.data("image", [None, 3, 8, 8])
        hidden = L.batch_norm(L.conv2d(image, 4, 3, padding=1), act="relu")
        hidden = L.pool2d(hidden, 2, "avg", 2)
        hidden = L.concat([L.flatten(hidden), L.reshape(L.transpose(hidden, [0, 2, 3, 1]), [-1, 64])], axis=1)
        guess = L.softmax(L.layer_norm(L.fc(hidden, 5)) * 2.0)
        exe.run(startup)
        fluid.io.save_inference_model(str(tmp_path), ["image"], [guess], exe, main)
    pictures = np.random.default_rng(0).random((2, 3, 8, 8), np.float32)

    def predicted():
        with fluid.scope_guard(fluid.Scope()):
            program, _, fetches = fluid.io.load_inference_model(str(tmp_path), exe)
            return exe.run(program, feed={"image": pictures}, fetch_list=fetches)[0]

    expected = predicted()
    message = messages().ProgramDesc()
    message.ParseFromString((tmp_path / "__model__").read_bytes())
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
    (tmp_path / "__model__").write_bytes(message.SerializeToString())
    assert np.array_equal(predicted(), expected)

    # Operators as they were before they kept the shape of their input; versions before and after 1.8, which loads all.
    renamed = 0
    for op in message.blocks[0].ops:
        if op.type in ("reshape2", "transpose2", "flatten2"):
            op.type = op.type[:-1]
            del op.outputs[[output.parameter for output in op.outputs].index("XShape")]
            renamed += 1
        for inputs in list(op.inputs):
            if not inputs.arguments:
                op.inputs.remove(inputs)
    assert renamed == 3
    for version in (0, 1005000, 1007002, 2000000):
        message.version.version = version
        (tmp_path / "__model__").write_bytes(message.SerializeToString())
        assert np.array_equal(predicted(), expected)
