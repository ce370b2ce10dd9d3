"""generate_mask_labels: masks are those recorded on Paddle 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.ops.detection.proposals import filled

from ..harness import check

SQUARE = [[2, 2], [10, 2], [10, 10], [2, 10]]
TRIANGLE = [[0, 0], [12, 0], [0, 12]]


def run(info, classes, crowd, outlines, levels, regions, labels, count, size, of_image=None):
    """The regions, places and masks; the last as text, a row of each class, None where it does not count."""
    objects, rows = of_image or ([len(classes)], [len(regions)])
    main = fluid.Program()
    with fluid.program_guard(main):
        slots = [
            layers.data("info", [3]),
            layers.data("classes", [1], dtype="int32", lod_level=1),
            layers.data("crowd", [1], dtype="int32", lod_level=1),
            layers.data("outlines", [2], lod_level=3),
            layers.data("regions", [4], lod_level=1),
            layers.data("labels", [1], dtype="int32", lod_level=1),
        ]
        made = layers.generate_mask_labels(*slots, count, size)

    def fed(values, kind, width, lengths):
        return fluid.create_lod_tensor(np.array(values, kind).reshape(-1, width), lengths, fluid.CPUPlace())

    feed = {
        "info": np.array(info, "float32"),
        "classes": fed(classes, "int32", 1, [objects]),
        "crowd": fed(crowd, "int32", 1, [objects]),
        "outlines": fed(outlines, "float32", 2, levels),
        "regions": fed(regions, "float32", 4, [rows]),
        "labels": fed(labels, "int32", 1, [rows]),
    }
    found = fluid.Executor(fluid.CPUPlace()).run(main, feed, list(made), return_numpy=False)
    assert len({str(value.recursive_sequence_lengths()) for value in found}) == 1
    rois, places, masks = (np.array(value) for value in found)
    assert masks.dtype == places.dtype == np.int32 and masks.shape == (len(rois), count * size * size)
    texts = [
        [None if (one == -1).all() else "".join(map(str, one)) for one in mask]
        for mask in masks.reshape(len(rois), count, -1)
    ]
    return rois.tolist(), places.ravel().tolist(), texts, found[0].recursive_sequence_lengths()


def test_the_inside_of_an_outline():
    rois, places, texts, _ = run(
        [[20, 20, 1]], [1], [0], SQUARE, [[1], [1], [4]], [[0, 0, 12, 12], [1, 1, 5, 5]], [1, 0], 3, 6
    )
    assert rois == [[0, 0, 12, 12]] and places == [0]
    assert texts == [[None, "000000" + "011110" * 4 + "000000", None]]


def test_the_operator():
    whole = np.full((1, 3, 16), -1, "int32")
    whole[0, 1] = np.array(list("0000011001100000"), "int32")
    check(
        "generate_mask_labels",
        {
            "ImInfo": np.array([[20, 20, 1]], "float32"),
            "GtClasses": np.array([[1]], "int32"),
            "IsCrowd": np.array([[0]], "int32"),
            "GtSegms": np.array(SQUARE, "float32"),
            "Rois": np.array([[1, 1, 5, 5], [0, 0, 12, 12]], "float32"),
            "LabelsInt32": np.array([[0], [1]], "int32"),
        },
        {"num_classes": 3, "resolution": 4},
        {
            "MaskRois": np.array([[0, 0, 12, 12]], "float32"),
            "RoiHasMaskInt32": np.array([[1]], "int32"),
            "MaskInt32": whole.reshape(1, 48),
        },
        lods={
            "GtClasses": [[[0, 1]]],
            "IsCrowd": [[[0, 1]]],
            "GtSegms": [[[0, 1], [0, 1], [0, 4]]],
            "Rois": [[[0, 2]]],
            "LabelsInt32": [[[0, 2]]],
        },
    )


def test_regions_are_of_the_scaled_image():
    regions = [[0, 0, 24, 24], [2, 2, 21, 21]]
    rois, places, texts, _ = run([[40, 40, 2]], [1], [0], SQUARE, [[1], [1], [4]], regions, [2, 1], 3, 6)
    assert rois == regions and places == [0, 1]
    assert texts[0] == [None, None, "000000" + "011110" * 4 + "000000"]
    assert texts[1] == [None, "000000" + "011111" * 5, None]


def test_the_nearest_object_counts_and_crowds_do_not():
    both, regions = [*SQUARE, *TRIANGLE], [[0, 0, 12, 12], [1, 1, 11, 11]]
    levels = [[2], [1, 1], [4, 3]]
    _, _, texts, _ = run(
        [[20, 20, 1]], [1, 2], [0, 0], both, levels, [*regions, [0, 0, 12, 13]], [1, 2, 1], 3, 5
    )
    assert (
        texts[0][1] == texts[2][1] == "1111011100110001000000000"
        and texts[1][2] == "1111111110111001100010000"
    )
    _, _, texts, _ = run([[20, 20, 1]], [1, 2], [1, 0], both, levels, regions, [1, 2], 3, 4)
    assert texts == [[None, "1110110010000000", None], [None, None, "1111111011001000"]]


def test_an_object_may_have_several_outlines():
    outlines = [*SQUARE, *(np.array(TRIANGLE) + 8).tolist()]
    _, _, texts, _ = run([[20, 20, 1]], [1], [0], outlines, [[1], [2], [4, 3]], [[0, 0, 20, 20]], [1], 2, 8)
    want = "00000000 01110000 01110000 01111111 00011110 00011100 00011000 00010000"
    assert texts == [[None, want.replace(" ", "")]]


def test_images_have_masks_of_their_own_and_may_have_no_object():
    outlines, levels = [*SQUARE, *TRIANGLE], [[1, 1], [1, 1], [4, 3]]
    regions = [[0, 0, 12, 12], [1, 1, 11, 11], [0, 0, 5, 5]]
    rois, places, texts, lengths = run(
        [[20, 20, 1]] * 2, [1, 2], [0, 0], outlines, levels, regions, [1, 2, 0], 3, 4, ([1, 1], [1, 2])
    )
    assert rois == regions[:2] and places == [0, 0] and lengths == [[1, 1]]
    assert texts == [[None, "0000011001100000", None], [None, None, "1111111011001000"]]
    rois, places, texts, _ = run([[20, 20, 1]], [1], [0], SQUARE, [[1], [1], [4]], regions[:2], [0, 0], 3, 4)
    assert rois == regions[:1] and places == [0] and texts == [[None] * 3]


@pytest.mark.parametrize("corners", [3, 4, 7])
def test_masks_are_near_the_true_inside(corners):
    """Against the sign of the distance to each edge of a convex outline."""
    angles = np.sort(np.random.RandomState(corners).rand(corners)) * 2 * np.pi
    outline = 20 + 17 * np.stack([np.cos(angles), np.sin(angles)], 1)
    y, x = np.mgrid[:40, :40] + 0.5
    inside, edge = np.ones((40, 40), bool), np.full((40, 40), 9.0)
    for (x0, y0), (x1, y1) in zip(outline, np.roll(outline, -1, axis=0), strict=True):
        away = ((x1 - x0) * (y - y0) - (y1 - y0) * (x - x0)) / np.hypot(x1 - x0, y1 - y0)
        inside &= away > 0
        edge = np.minimum(edge, abs(away))
    found = filled(outline, 40)
    assert (found == inside)[edge > 1].all() and abs(int(found.sum()) - int(inside.sum())) < 40
