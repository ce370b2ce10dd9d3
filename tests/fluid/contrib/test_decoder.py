"""Errors of contrib's decoders; for their results see `tests/conformance/cases/g_contrib_decoder.py`."""

import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.contrib.decoder.beam_search_decoder import (
    BeamSearchDecoder,
    InitState,
    StateCell,
    TrainingDecoder,
)
from tests.refusals import refuses

pytestmark = pytest.mark.usefixtures("alone")


def cell():
    context = fluid.data("context", [-1, 4])
    made = StateCell(inputs={"x": None}, states={"h": InitState(init=context)}, out_state="h")

    @made.state_updater
    def update(state_cell):
        state_cell.set_state("h", layers.fc([state_cell.get_input("x"), state_cell.get_state("h")], 4))

    return made


def test_states_and_cells():
    context = fluid.data("y", [-1, 4])
    refuses(lambda: InitState(shape=[-1, 3]), ValueError, "init_boot must be provided")
    assert InitState(init_boot=context, shape=[-1, 3]).value.shape == (-1, 3)
    with pytest.raises(ValueError, match="must be an InitState"):
        StateCell(inputs={}, states={"h": context}, out_state="h")
    with pytest.raises(ValueError, match="out_state must be one state"):
        StateCell(inputs={}, states={"h": InitState(init=context)}, out_state="q")
    made = cell()
    for ask, message in ((made.get_state, "Unknown state z"), (made.get_input, "Invalid input z")):
        with pytest.raises(ValueError, match=message):
            ask("z")
    refuses(lambda: made.compute_state({"q": context}), ValueError, "Unknown input q")
    with pytest.raises(TypeError, match="state_updater"):
        StateCell(inputs={}, states={"h": InitState(init=context)}, out_state="h").compute_state({})


def test_training_decoder():
    made = cell()
    decoder = TrainingDecoder(made)
    refuses(lambda: TrainingDecoder(made), ValueError, "has already entered a decoder")
    refuses(decoder, ValueError, "outside the block")
    with pytest.raises(ValueError, match="step_input should be invoked inside block"):
        decoder.step_input(fluid.data("z", [-1, 4]))
    words = fluid.data("words", [-1, 4], lod_level=1)
    with decoder.block():
        decoder.state_cell.compute_state({"x": decoder.step_input(words)})
        decoder.state_cell.update_states()
        decoder.output(decoder.state_cell.out_state())
    assert decoder().shape == (-1, 4)
    with pytest.raises(ValueError, match="only be invoked once"), decoder.block():
        pass
    BeamSearchDecoder(made, words, words, 9, 4)  # the cell is free again


def test_beam_search_decoder():
    ids, scores = fluid.data("i", [-1, 1], "int64", lod_level=2), fluid.data("s", [-1, 1], lod_level=2)
    decoder = BeamSearchDecoder(cell(), ids, scores, 9, 4)
    refuses(decoder, ValueError, "outside the block")
    refuses(lambda: decoder.read_array(ids), ValueError, "read_array should be invoked inside block")
    with pytest.raises(ValueError, match="invoke read_array before"), decoder.block():
        decoder.update_array(ids, ids)
    other = BeamSearchDecoder(cell(), ids, scores, 9, 4, input_var_dict={"q": scores})
    refuses(other.decode, ValueError, "q not found in StateCell")
