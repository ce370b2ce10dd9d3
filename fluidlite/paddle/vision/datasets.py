"""Data sets of images (`paddle.vision.datasets`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...dataset import cifar, mnist
from ...fluid.layers.checks import check_choice
from ..io import Dataset

__all__ = ["MNIST", "Cifar10", "Cifar100"]


class _Images(Dataset[Any]):
    """Images that are read once, and a transform."""

    def __init__(self, transform: Callable[[Any], Any] | None) -> None:
        self.transform = transform
        self.images: np.ndarray
        self.labels: np.ndarray

    def __getitem__(self, idx: int) -> tuple[Any, np.ndarray]:
        image, label = self.images[idx], self.labels[idx : idx + 1]
        return (image if self.transform is None else self.transform(image)), label

    def __len__(self) -> int:
        return len(self.labels)


class MNIST(_Images):
    """Handwritten digits (`paddle.vision.datasets.MNIST`).

    Args:
        image_path, label_path: files in IDX format; by default those that `paddle.dataset.mnist` finds, which without a
            network are a part of the digits, with a warning.
        mode: 'train' or 'test'.
        transform: called with each image.
        download: accepted.
        backend: 'cv2': images are float32 arrays [28, 28, 1] from 0 to 255.

    Items are (image, label), the label int64 of shape [1].
    """

    def __init__(
        self,
        image_path: str | None = None,
        label_path: str | None = None,
        mode: str = "train",
        transform: Callable[[Any], Any] | None = None,
        download: bool = True,
        backend: str = "cv2",
    ) -> None:
        super().__init__(transform)
        check_choice(mode, "mode", ("train", "test"), "MNIST")
        if (image_path is None) != (label_path is None):
            raise ValueError("MNIST takes both image_path and label_path, or neither")
        if image_path is not None and label_path is not None:
            reader = mnist.reader_creator(image_path, label_path)
        else:
            reader = mnist.train() if mode == "train" else mnist.test()
        pixels, labels = zip(*reader(), strict=True)
        # The reader has them from -1 to 1.
        self.images = np.round((np.stack(pixels) + 1) * 127.5).astype("float32").reshape(-1, 28, 28, 1)
        self.labels = np.array(labels, "int64")


class _Cifar(_Images):
    _readers: tuple[Callable[[], Any], Callable[[], Any]]

    def __init__(
        self,
        data_file: str | None = None,
        mode: str = "train",
        transform: Callable[[Any], Any] | None = None,
        download: bool = True,
        backend: str = "cv2",
    ) -> None:
        super().__init__(transform)
        check_choice(mode, "mode", ("train", "test"), type(self).__name__)
        if data_file is not None:
            raise ValueError(
                f"{type(self).__name__} takes the data from where paddle.dataset.cifar finds it, not from data_file"
            )
        train, test = type(self)._readers
        pixels, labels = zip(*(train if mode == "train" else test)()(), strict=True)
        self.images = (
            np.round(np.stack(pixels) * 255).astype("float32").reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        )
        self.labels = np.array(labels, "int64")


class Cifar10(_Cifar):
    """Small photographs of ten classes (`paddle.vision.datasets.Cifar10`).

    `mode` is 'train' or 'test', `transform` is called with each image, a float32 array [32, 32, 3] from 0 to 255. Items
    are (image, label), the label int64 of shape [1].
    """

    _readers = (cifar.train10, cifar.test10)


class Cifar100(_Cifar):
    """Small photographs of a hundred classes (`paddle.vision.datasets.Cifar100`); as `Cifar10`."""

    _readers = (cifar.train100, cifar.test100)
