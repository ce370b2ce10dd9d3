"""`paddle.utils.image_util`."""

import io

import numpy as np
import pytest

from fluidlite.paddle.utils import image_util

IMAGE = np.arange(3 * 10 * 12, dtype="float32").reshape(3, 10, 12)


def test_parts_of_images():
    np.testing.assert_array_equal(image_util.flip(IMAGE), IMAGE[:, :, ::-1])
    np.testing.assert_array_equal(image_util.crop_img(IMAGE, 6), IMAGE[:, 2:8, 3:9])
    np.testing.assert_array_equal(image_util.crop_img(IMAGE[0], 6, color=False), IMAGE[0, 2:8, 3:9])
    padded = image_util.crop_img(IMAGE, 16)
    assert padded.shape == (3, 16, 16) and padded.sum() == IMAGE.sum()
    np.testing.assert_array_equal(padded[:, 3:13, 2:14], IMAGE)
    state = np.random.get_state()
    try:
        np.random.seed(0)
        parts = [image_util.crop_img(IMAGE, 6, test=False) for _ in range(20)]
    finally:
        np.random.set_state(state)
    steps = {part[0, 0, 1] - part[0, 0, 0] for part in parts}
    assert steps == {1.0, -1.0} and len({part.min() for part in parts}) > 5
    flat = image_util.preprocess_img(IMAGE, np.ones((3, 6, 6), "float32"), 6, False)
    np.testing.assert_array_equal(flat, (IMAGE[:, 2:8, 3:9] - 1).ravel())


def test_oversample():
    image = IMAGE.transpose(1, 2, 0)
    made = image_util.oversample([image], (6, 6))
    places = [(0, 0), (0, 6), (4, 0), (4, 6), (2, 3)]
    wanted = [image[i : i + 6, j : j + 6] for i, j in places]
    np.testing.assert_array_equal(made, [*wanted, *(part[:, ::-1] for part in wanted)])


def test_means_and_transformers(tmp_path):
    np.savez(tmp_path / "meta.npz", data_mean=np.arange(300.0))
    mean = image_util.load_meta(str(tmp_path / "meta.npz"), 10, 6)
    np.testing.assert_array_equal(mean, np.arange(300.0).reshape(3, 10, 10)[:, 2:8, 2:8])
    with pytest.raises(AssertionError, match="300 numbers"):
        image_util.load_meta(str(tmp_path / "meta.npz"), 9, 6)
    change = image_util.ImageTransformer((2, 0, 1), (2, 1, 0), np.ones(3))
    np.testing.assert_array_equal(change.transformer(IMAGE.transpose(1, 2, 0)), IMAGE[::-1] - 1)
    with pytest.raises(AssertionError, match="3 axes"):
        image_util.ImageTransformer((1, 0))


def test_files(tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    picture = pillow.fromarray(IMAGE.transpose(1, 2, 0).astype("uint8"))
    picture.save(tmp_path / "a.png")
    loaded = image_util.load_image(str(tmp_path / "a.png"))
    np.testing.assert_array_equal(np.array(loaded), np.array(picture))
    assert image_util.load_image(str(tmp_path / "a.png"), False).mode == "L"
    assert image_util.resize_image(picture, 5).size == (6, 5)
    data = io.BytesIO()
    picture.save(data, "JPEG")
    assert image_util.decode_jpeg(data.getvalue()).shape == (3, 10, 12)
