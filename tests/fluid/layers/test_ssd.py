"""The single shot detector: what its layers refuse; its numbers are compared in tests/conformance."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers


def maps(count):
    image = fluid.data("image", [None, 3, 16, 16], "float32")
    return image, [fluid.data(f"map{k}", [None, 4, 8 >> k, 8 >> k], "float32") for k in range(count)]


def head(count=2, **given):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        image, found = maps(count)
        ratios = given.pop("aspect_ratios", [[2.0]] * count)
        return [v.shape for v in layers.multi_box_head(found, image, 16, 3, ratios, **given)]


def test_head():
    sizes = {"min_sizes": [4.0, 6.0], "max_sizes": [5.0, 8.0]}
    assert head(**sizes) == [(-1, -1, 4), (-1, -1, 3), (80 * 4, 4), (80 * 4, 4)]
    assert head(1, min_sizes=[4.0], max_sizes=[5.0]) == [(-1, 1024), (-1, 768), (8, 8, 4, 4), (8, 8, 4, 4)]
    assert head(3, min_ratio=20, max_ratio=90)[2] == (84 * 4, 4)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({}, AssertionError, "min_sizes for each of its 2 inputs"),
        ({"min_sizes": [4.0, 6.0]}, AssertionError, "max_sizes for each"),
        ({"min_ratio": 20, "max_ratio": 90}, AssertionError, "min_ratio and max_ratio for three inputs"),
        ({"min_sizes": [4.0, 5.0], "max_sizes": [5.0, 6.0], "aspect_ratios": [[2.0]]}, ValueError,
         "'aspect_ratios'"),
        ({"min_sizes": [4.0, 5.0], "max_sizes": [5.0, 6.0], "steps": 3.0}, ValueError,
         "'steps' of multi_box_head"),
    ],
)  # fmt: skip
def test_head_that_does_not_fit(given, error, message):
    with pytest.raises(error, match=message):
        head(**given)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"min_sizes": [4.0, 8.0]}, IndexError),
        ({"max_sizes": [8.0, 12.0]}, IndexError),
        ({"min_sizes": None}, TypeError),
        ({"max_sizes": None}, TypeError),
        ({"min_sizes": None, "max_sizes": None}, TypeError),
    ],
)
def test_sizes_of_three_maps_that_do_not_fit(given, error):
    with pytest.raises(error, match="for each of its 3 inputs"):
        head(3, **{"min_sizes": [4.0, 8.0, 12.0], "max_sizes": [8.0, 12.0, 16.0], **given})


def test_sizes_of_further_maps_are_ignored():
    sizes, larger = [4.0, 8.0, 12.0], [8.0, 12.0, 16.0]
    shapes = head(3, min_sizes=sizes, max_sizes=larger)
    assert head(3, min_sizes=[*sizes, 18.0], max_sizes=[*larger, 20.0, 30.0]) == shapes


def test_loss_mines_negatives_only(programs):
    x = fluid.data("x", [None, 4], "float32")
    with pytest.raises(ValueError, match="must be 'max_negative', got 'hard_example'"):
        layers.ssd_loss(x, x, x, x, x, x, mining_type="hard_example")


def test_numbers_of_layers(programs):
    image, (found,) = maps(1)
    with pytest.raises(ValueError, match="'steps' of prior_box must be two numbers"):
        layers.prior_box(found, image, 4.0, steps=[1.0])
    with pytest.raises(TypeError, match="'densities' of density_prior_box must be a list"):
        layers.density_prior_box(found, image)
    with pytest.raises(TypeError, match="'prior_box_var' of box_coder must be a Variable or a list"):
        layers.box_coder(found, None, found)
    with pytest.raises(ValueError, match=r"'scores' of locality_aware_nms must be \[N, 1, M\]"):
        layers.locality_aware_nms(found, found, 0.1, 5, 5)
    with pytest.raises(TypeError, match="'score_threshold' of multiclass_nms must be a number, got 'x'"):
        layers.multiclass_nms(found, found, "x", 5, 5)


def test_sequences_reach_reference_kernels_in_plans(programs):
    boxes, info = fluid.data("boxes", [None, 4], "float32", 1), fluid.data("info", [None, 3], "float32")
    clipped = layers.box_clip(layers.scale(boxes, 2.0), info)
    indices, _ = layers.bipartite_match(layers.iou_similarity(clipped, clipped))
    exe = fluid.Executor(fluid.CPUPlace())
    for lengths in ([2, 1], [1, 3], [2, 2]):
        rows = np.arange(4 * sum(lengths), dtype="float32").reshape(-1, 4)
        fed = fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace())
        edges = np.array([[9, 11, 1], [33, 25, 1]], "float32")
        got, matched = exe.run(
            feed={"boxes": fed, "info": edges}, fetch_list=[clipped, indices], return_numpy=False
        )
        most = np.repeat([[10, 8, 10, 8], [24, 32, 24, 32]], lengths, axis=0)
        np.testing.assert_array_equal(np.array(got), np.minimum(2 * rows, most))
        assert got.recursive_sequence_lengths() == [lengths]
        assert np.array(matched).shape == (2, sum(lengths)) and not matched.lod()
    assert "on its own" not in exe.describe()


@pytest.mark.parametrize(
    ("code", "axis", "follows"), [("decode", 0, 1), ("decode", 1, 0), ("encode", 0, 1), ("encode", 1, 1)]
)
def test_whose_sequences_coded_boxes_have(code, axis, follows):
    """As recorded from Paddle 1.8.5: what is decoded for the classes of a region is in the image of that region."""
    place, lengths = fluid.CPUPlace(), ([[1, 2]], [[2, 1]])
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        regions = fluid.data("regions", [None, 4], lod_level=1)
        offsets = fluid.data("offsets", [None, 3, 4] if code == "decode" else [None, 4], lod_level=1)
        made = layers.box_coder(regions, [0.1, 0.1, 0.2, 0.2], offsets, f"{code}_center_size", axis=axis)
        values = np.ones((3, 4), "float32"), np.ones((3, 3, 4) if code == "decode" else (3, 4), "float32")
        feed = [fluid.create_lod_tensor(v, n, place) for v, n in zip(values, lengths, strict=True)]
        exe = fluid.Executor(place)
        for _ in range(2):
            (got,) = exe.run(
                feed=dict(zip(("regions", "offsets"), feed, strict=True)),
                fetch_list=[made],
                return_numpy=False,
            )
            assert got.recursive_sequence_lengths() == lengths[follows]
