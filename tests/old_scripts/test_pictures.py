"""The pictures of `scipy.misc`."""

import numpy as np
import pytest

from fluidlite.old_scripts import removed_modules

pytest.importorskip("PIL.Image")


def test_values_are_scaled_to_bytes_once():
    data = np.array([[0.0, 1.0], [2.0, 4.0]])
    assert removed_modules.bytescale(data).tolist() == [[0, 64], [128, 255]]
    assert removed_modules.bytescale(data, cmin=0, cmax=2, high=100).tolist() == [[0, 50], [100, 100]]
    assert removed_modules.bytescale(np.ones(2)).tolist() == [0, 0]
    same = np.array([3], np.uint8)
    assert removed_modules.bytescale(same) is same
    with pytest.raises(ValueError, match="cmax"):
        removed_modules.bytescale(data, cmin=3, cmax=2)


def test_written_and_read(tmp_path):
    picture = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    removed_modules.imsave(tmp_path / "a.png", picture)
    assert (removed_modules.imread(tmp_path / "a.png") == picture).all()
    grey = removed_modules.imread(tmp_path / "a.png", flatten=True)
    assert grey.shape == (2, 4) and grey.dtype == np.float32
    removed_modules.imsave(tmp_path / "b.png", np.array([[0.0, 10.0]]))
    assert removed_modules.imread(tmp_path / "b.png").tolist() == [[0, 255]]


def test_sizes_and_channels():
    picture = np.zeros((4, 6, 3), np.uint8)
    assert removed_modules.imresize(picture, (2, 5)).shape == (2, 5, 3)
    assert (
        removed_modules.imresize(picture, 50).shape
        == removed_modules.imresize(picture, 0.5, "nearest").shape
        == (2, 3, 3)
    )
    assert removed_modules.toimage(np.zeros((3, 4, 6))).size == (6, 4)
    assert removed_modules.imrotate(np.eye(2, dtype=np.uint8), 90, "nearest").tolist() == [[0, 1], [1, 0]]
    with pytest.raises(ValueError, match="3 or 4 channels"):
        removed_modules.toimage(np.zeros((2, 2, 2)))
    with pytest.raises(ValueError, match="interp"):
        removed_modules.imresize(picture, 50, "nicely")
