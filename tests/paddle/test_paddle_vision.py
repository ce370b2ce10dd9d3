"""`paddle.vision`: digits and transforms."""

import gzip

import numpy as np
import pytest

import fluidlite.paddle as paddle
from fluidlite.dataset import mnist
from fluidlite.paddle.vision import datasets, transforms

IMAGE = np.arange(24, dtype="uint8").reshape(2, 4, 3)


@pytest.fixture
def digits(tmp_path):
    """Files of six digits."""
    draw = np.random.RandomState(0)
    pixels, labels = draw.randint(0, 256, (6, 28, 28), "uint8"), np.arange(6, dtype="uint8")
    for name, numbers, array in (("images", (2051, 6, 28, 28), pixels), ("labels", (2049, 6), labels)):
        with gzip.open(tmp_path / f"{name}.gz", "wb") as file:
            file.write(np.array(numbers, ">i4").tobytes() + array.tobytes())
    return str(tmp_path / "images.gz"), str(tmp_path / "labels.gz"), pixels


def test_mnist(digits):
    images, labels, pixels = digits
    data = datasets.MNIST(images, labels)
    assert len(data) == 6 and isinstance(data, paddle.io.Dataset)
    image, label = data[2]
    np.testing.assert_array_equal(image, pixels[2][:, :, None])
    assert image.dtype == np.float32 and label.dtype == np.int64 and label.tolist() == [2]
    data = datasets.MNIST(
        images, labels, transform=transforms.Compose([transforms.Normalize(127.5, 127.5, "HWC")])
    )
    loader = paddle.io.DataLoader(data, batch_size=4)
    batches = list(loader)
    assert [batch[0].shape for batch in batches] == [[4, 28, 28, 1], [2, 28, 28, 1]]
    np.testing.assert_allclose(batches[0][0].numpy()[..., 0], pixels[:4] / 127.5 - 1, atol=1e-5)
    with pytest.raises(ValueError, match="both"):
        datasets.MNIST(images)
    with pytest.raises(ValueError, match="'train', 'test'"):
        datasets.MNIST(mode="all")


def test_digits_of_the_reader(digits, monkeypatch):
    images, labels, pixels = digits
    monkeypatch.setattr(mnist, "test", lambda: mnist.reader_creator(images, labels))
    np.testing.assert_array_equal(datasets.MNIST(mode="test").images[..., 0], pixels)


def test_transforms():
    tensor = transforms.ToTensor()(IMAGE)
    assert tensor.shape == [3, 2, 4]
    np.testing.assert_allclose(tensor.numpy(), IMAGE.transpose(2, 0, 1) / np.float32(255))
    assert transforms.to_tensor(IMAGE.astype("float32"), "HWC").numpy().max() == 23
    assert transforms.to_tensor(IMAGE[:, :, 0]).shape == [1, 2, 4]
    normal = transforms.Normalize([1, 2, 3], 2.0)(tensor)
    np.testing.assert_allclose(normal.numpy()[1], (tensor.numpy()[1] - 2) / 2, rtol=1e-6)
    gray = transforms.normalize(np.full((1, 2, 2), 3.0), 1.0, 2.0)
    assert (gray == 1).all()
    np.testing.assert_array_equal(transforms.Transpose()(IMAGE), IMAGE.transpose(2, 0, 1))
    np.testing.assert_array_equal(transforms.RandomHorizontalFlip(1.0)(IMAGE), IMAGE[:, ::-1])
    np.testing.assert_array_equal(transforms.RandomHorizontalFlip(0.0)(IMAGE), IMAGE)
    assert transforms.RandomCrop(3, padding=1)(IMAGE).shape == (3, 3, 3)
    np.testing.assert_array_equal(transforms.RandomCrop((2, 4))(IMAGE), IMAGE)
    with pytest.raises(ValueError, match=r"no part of size \[5, 5\]"):
        transforms.RandomCrop(5)(IMAGE)
