"""Folders of labelled images as files of batches (`paddle.utils.preprocess_img`)."""

from __future__ import annotations

import io
import os
import random
from typing import Any

import numpy as np

from ...base import missing
from ...dataset.image import pillow
from .image_util import crop_img, resize_image
from .preprocess_util import Dataset, DatasetCreater, Label, get_label_set_from_dir, list_images, save_file

__all__ = ["DiskImage", "ImageClassificationDatasetCreater", "resize_image"]


class DiskImage:
    """An image in a file, read when it is needed (`paddle.utils.preprocess_img.DiskImage`).

    Args:
        path: the file.
        target_size: how long its shorter side shall be.
    """

    def __init__(self, path: str, target_size: int) -> None:
        self.path, self.target_size = path, target_size
        self.img: Any = None

    def read_image(self) -> None:
        """Read the file, once, and say so."""
        if self.img is None:
            print("reading: " + self.path)
            with pillow().open(self.path) as image:
                self.img = resize_image(image, self.target_size)

    def convert_to_array(self) -> np.ndarray:
        """The image [channels, height, width], or [height, width] of a grey one."""
        self.read_image()
        array = np.array(self.img)
        return array.transpose(2, 0, 1) if array.ndim == 3 else array

    def convert_to_paddle_format(self) -> bytes:
        """The image as JPEG."""
        self.read_image()
        out = io.BytesIO()
        self.img.save(out, "jpeg")
        return out.getvalue()


class ImageClassificationDatasetCreater(DatasetCreater):
    """Makes batches of images in folders that are called as their labels are.

    Args:
        data_path: the folder with `train` and `test`, each with a folder for every label.
        target_size: how long the shorter side of images shall be.
        color: whether the images have colors.

    Follows `paddle.utils.preprocess_img.ImageClassificationDatasetCreater`.
    """

    def __init__(self, data_path: str, target_size: int, color: bool = True) -> None:
        super().__init__(data_path)
        self.target_size, self.color = target_size, color
        self.keys = ["images", "labels"]
        self.permute_key = "labels"

    def create_meta_file(self, data: Dataset) -> None:
        """Write the mean of the central crops of all images, flat int32, and the size and colour of the images."""
        middles = [crop_img(item[0].convert_to_array(), self.target_size, self.color) for item in data.data]
        mean = np.mean(middles, axis=0, dtype="float64").astype("int32").flatten()
        meta = {
            "data_mean": mean,
            "image_size": self.target_size,
            "mean_image_size": self.target_size,
            "num_classes": self.num_classes,
            "color": self.color,
        }
        save_file(meta, os.path.join(self.data_path, self.batch_dir_name, self.meta_filename))

    def create_dataset_from_list(self, path: str) -> tuple[Dataset, dict[str, int]]:
        """The images that a file lists, one `PATH LABEL` a line; labels are numbered as they come."""
        labels: dict[str, int] = {}
        data = []
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                image, name = line.split()[:2]
                number = labels.setdefault(name, len(labels))
                data.append((DiskImage(image, self.target_size), Label(number, name)))
        return Dataset(data, self.keys), labels

    def create_dataset_from_dir(self, path: str) -> tuple[Dataset, dict[str, int]]:
        """The images in the folders of a folder, in a random order."""
        labels = get_label_set_from_dir(path)
        data = [
            (DiskImage(image, self.target_size), Label(number, name))
            for name, number in labels.items()
            for image in list_images(os.path.join(path, name))
        ]
        random.shuffle(data)
        return Dataset(data, self.keys), labels


__getattr__ = missing.reporter(__name__)
