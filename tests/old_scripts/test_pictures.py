"""The pictures of `scipy.misc`."""

import numpy as np
import pytest

from fluidlite.old_scripts import pictures

pytest.importorskip("PIL.Image")


def test_values_are_scaled_to_bytes_once():
    data = np.array([[0.0, 1.0], [2.0, 4.0]])
    assert pictures.bytescale(data).tolist() == [[0, 64], [128, 255]]
    assert pictures.bytescale(data, cmin=0, cmax=2, high=100).tolist() == [[0, 50], [100, 100]]
    assert pictures.bytescale(np.ones(2)).tolist() == [0, 0]
    same = np.array([3], np.uint8)
    assert pictures.bytescale(same) is same
    with pytest.raises(ValueError, match="cmax"):
        pictures.bytescale(data, cmin=3, cmax=2)


def test_written_and_read(tmp_path):
    picture = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    pictures.imsave(tmp_path / "a.png", picture)
    assert (pictures.imread(tmp_path / "a.png") == picture).all()
    grey = pictures.imread(tmp_path / "a.png", flatten=True)
    assert grey.shape == (2, 4) and grey.dtype == np.float32
    pictures.imsave(tmp_path / "b.png", np.array([[0.0, 10.0]]))
    assert pictures.imread(tmp_path / "b.png").tolist() == [[0, 255]]


def test_sizes_and_channels():
    picture = np.zeros((4, 6, 3), np.uint8)
    assert pictures.imresize(picture, (2, 5)).shape == (2, 5, 3)
    assert (
        pictures.imresize(picture, 50).shape == pictures.imresize(picture, 0.5, "nearest").shape == (2, 3, 3)
    )
    assert pictures.toimage(np.zeros((3, 4, 6))).size == (6, 4)
    assert pictures.imrotate(np.eye(2, dtype=np.uint8), 90, "nearest").tolist() == [[0, 1], [1, 0]]
    with pytest.raises(ValueError, match="3 or 4 channels"):
        pictures.toimage(np.zeros((2, 2, 2)))
    with pytest.raises(ValueError, match="interp"):
        pictures.imresize(picture, 50, "nicely")
