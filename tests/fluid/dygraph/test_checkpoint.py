"""`save_dygraph` and `load_dygraph`: files as real Paddle 1.8.5 writes and reads them."""

import pickle

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.errors import FormatError
from fluidlite.dygraph import BatchNorm, Linear, Sequential, to_variable

pytestmark = pytest.mark.usefixtures("eager")

# What real Paddle 1.8.5 wrote for a Linear(2, 2, bias_attr=False) and its Momentum optimizer.
_HEAD = (
    b"cnumpy.core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\nq\x03K\x00\x85q\x04c_codecs\nencode\nq\x05"
)
_HEAD += (
    b"X\x01\x00\x00\x00bq\x06X\x06\x00\x00\x00latin1q\x07\x86q\x08Rq\t\x87q\nRq\x0b(K\x01K\x02K\x02\x86q\x0c"
)
_HEAD += b"cnumpy\ndtype\nq\rX\x02\x00\x00\x00f4q\x0e\x89\x88\x87q\x0fRq\x10(K\x03X\x01\x00\x00\x00<q\x11NNN"
_HEAD += b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x12b\x89h\x05"
_TAIL = b"q\x13h\x07\x86q\x14Rq\x15tq\x16bX\x1b\x00\x00\x00StructuredToParameterName@@q\x17}q\x18h\x01"
PARAMETERS = b"\x80\x02}q\x00(X\x06\x00\x00\x00weightq\x01" + _HEAD
PARAMETERS += b"X\x12\x00\x00\x00\x00\x00\xc2\x80?\x00\x00\x00@\x00\x00@@\x00\x00\xc2\x80@" + _TAIL
PARAMETERS += b"X\x0c\x00\x00\x00linear_0.w_0q\x19su."
OPTIMIZER = b"\x80\x02}q\x00(X\x17\x00\x00\x00linear_0.w_0_velocity_0q\x01" + _HEAD
OPTIMIZER += b"X\x10\x00\x00\x00" + b"\x00\x00\x00?" * 4 + _TAIL
OPTIMIZER += b"X\x17\x00\x00\x00linear_0.w_0_velocity_0q\x19su."


def same(first, second):
    return list(first) == list(second) and all(np.array_equal(first[key], second[key]) for key in first)


def test_reads_what_real_paddle_wrote(tmp_path):
    (tmp_path / "m.pdparams").write_bytes(PARAMETERS)
    (tmp_path / "m.pdopt").write_bytes(OPTIMIZER)
    parameters, optimizer = fluid.load_dygraph(tmp_path / "m")
    assert list(parameters) == ["weight"] and parameters["weight"].tolist() == [[1, 2], [3, 4]]
    assert optimizer["linear_0.w_0_velocity_0"].tolist() == [[0.5, 0.5], [0.5, 0.5]]
    named, _ = fluid.load_dygraph(tmp_path / "m", keep_name_table=True)
    assert named["StructuredToParameterName@@"] == {"weight": "linear_0.w_0"}
    layer = Linear(2, 2, bias_attr=False)
    layer.set_dict(parameters)
    assert layer.weight.numpy().tolist() == [[1, 2], [3, 4]]
    layer.set_dict(named)


def test_writes_what_real_paddle_writes(tmp_path):
    layer = Linear(2, 2, bias_attr=False)
    layer.weight.set_value(np.array([[1, 2], [3, 4]], "float32"))
    fluid.save_dygraph(layer.state_dict(), f"{tmp_path}/m")
    assert (tmp_path / "m.pdparams").read_bytes() == PARAMETERS


def test_a_training_run_goes_on_from_its_files(tmp_path):
    x = to_variable(np.random.default_rng(0).normal(size=(5, 3)).astype("float32"))

    def made():
        net = Sequential(Linear(3, 2), BatchNorm(2), Linear(2, 1))
        return net, fluid.optimizer.Adam(0.1, parameter_list=net.parameters())

    def step(net, optimizer):
        loss = fluid.layers.reduce_mean(fluid.layers.square(net(x) - 1.0))
        loss.backward()
        optimizer.minimize(loss)
        net.clear_gradients()
        return loss.numpy()

    net, optimizer = made()
    step(net, optimizer)
    fluid.save_dygraph(net.state_dict(), f"{tmp_path}/folder/m")
    fluid.save_dygraph(optimizer.state_dict(), f"{tmp_path}/folder/m")
    parameters, state = fluid.load_dygraph(f"{tmp_path}/folder/m")
    want = [step(net, optimizer) for _ in range(2)]
    with fluid.unique_name.guard():
        net, optimizer = made()
    net.set_dict(parameters)
    optimizer.set_dict(state)
    assert [step(net, optimizer) for _ in range(2)] == want


def test_suffixes(tmp_path):
    layer = Linear(2, 2)
    fluid.save_dygraph(layer.state_dict(), f"{tmp_path}/a")
    fluid.save_dygraph({"x": to_variable(np.ones(2, "float32")), "n": np.ones(3), "i": 7}, f"{tmp_path}/b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pdparams", "b.pdopt"]
    plain, optimizer = fluid.load_dygraph(f"{tmp_path}/a")
    assert optimizer is None
    for ending in (".pdparams", ".pdopt"):
        assert same(fluid.load_dygraph(f"{tmp_path}/a{ending}")[0], plain)
    (tmp_path / "b.pdparams").write_bytes((tmp_path / "a.pdparams").read_bytes())
    other = fluid.load_dygraph(f"{tmp_path}/b")[1]
    assert other["x"].tolist() == [1, 1] and other["n"].dtype == "float64" and other["i"] == 7


def test_reads_what_fluid_save_wrote(tmp_path):
    """A model trained as a static program can be gone on with, by the names of its parameters."""
    array = np.arange(4, dtype="float32").reshape(2, 2)
    (tmp_path / "s.pdparams").write_bytes(pickle.dumps({"linear_0.w_0": array}, 2))
    layer = Linear(2, 2, bias_attr=False)
    layer.set_dict(fluid.load_dygraph(tmp_path / "s")[0], use_structured_name=False)
    assert layer.weight.numpy().tolist() == array.tolist()


def test_refuses(tmp_path):
    layer = Linear(2, 2)
    with pytest.raises(AssertionError, match="state_dict is empty"):
        fluid.save_dygraph({}, f"{tmp_path}/m")
    with pytest.raises(AssertionError, match="no name at its end"):
        fluid.save_dygraph(layer.state_dict(), f"{tmp_path}/")
    with pytest.raises(TypeError, match="takes a state dict, got a int"):
        fluid.save_dygraph(3, f"{tmp_path}/m")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RuntimeError, match=r"Parameter file \[ .*nothing.pdparams \] not exists"):
        fluid.load_dygraph(f"{tmp_path}/nothing")


def test_nothing_in_a_file_is_run(tmp_path):
    class Bad:
        def __reduce__(self):
            return print, ("run",)

    (tmp_path / "m.pdparams").write_bytes(pickle.dumps({"weight": Bad()}, 2))
    with pytest.raises(FormatError, match=r"m.pdparams is refused.*Nothing in it was run"):
        fluid.load_dygraph(tmp_path / "m")
    (tmp_path / "m.pdparams").write_bytes(PARAMETERS[:-9])
    with pytest.raises(FormatError, match="cut off"):
        fluid.load_dygraph(tmp_path / "m")
