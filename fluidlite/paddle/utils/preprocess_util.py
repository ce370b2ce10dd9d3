"""Folders of labelled data as files of batches (`paddle.utils.preprocess_util`).

A batch is a pickled dict of lists, by the names of a data set's slots; a list file names the batches, one a line.
"""

from __future__ import annotations

import io
import os
import pickle
import random
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ...base.storage.files import write_file
from ...dataset.image import pillow
from .image_util import crop_img, resize_image

__all__ = [
    "DataBatcher",
    "Dataset",
    "DatasetCreater",
    "Label",
    "exclude_pattern",
    "get_label_set_from_dir",
    "list_dirs",
    "list_files",
    "list_images",
    "save_file",
    "save_list",
]


def save_file(data: Any, filename: str) -> None:
    """Pickle `data` to a file (`paddle.utils.preprocess_util.save_file`)."""
    write_file(filename, pickle.dumps(data, pickle.HIGHEST_PROTOCOL), folders=False)


def save_list(l: Sequence[str], outfile: str) -> None:  # noqa: E741 Fluid's name
    """Write texts, one a line (`paddle.utils.preprocess_util.save_list`)."""
    write_file(outfile, "\n".join(l), folders=False)


def exclude_pattern(f: str) -> bool:
    """Whether a name is that of a hidden file or of an editor's copy (`paddle.utils.preprocess_util`)."""
    return f[:1] == "." or f[-1:] == "~"


def _entries(path: str, folders: bool) -> list[str]:
    with os.scandir(path) as entries:
        return [
            os.path.join(path, entry.name)
            for entry in entries
            if (entry.is_dir() if folders else entry.is_file()) and not exclude_pattern(entry.name)
        ]


def list_dirs(path: str) -> list[str]:
    """The folders in a folder, hidden ones left out (`paddle.utils.preprocess_util.list_dirs`)."""
    return _entries(path, folders=True)


def list_files(path: str) -> list[str]:
    """The files in a folder, hidden ones left out (`paddle.utils.preprocess_util.list_files`)."""
    return _entries(path, folders=False)


def list_images(path: str, exts: Collection[str] = frozenset({"jpg", "png", "bmp", "jpeg"})) -> list[str]:
    """The files in a folder that end in one of `exts` (`paddle.utils.preprocess_util.list_images`)."""
    return [file for file in list_files(path) if os.path.splitext(file)[1][1:] in exts]


def get_label_set_from_dir(path: str) -> dict[str, int]:
    """Numbers for the folders in a folder, in the order of their names, which are labels.

    Follows `paddle.utils.preprocess_util.get_label_set_from_dir`.
    """
    return {os.path.basename(name): number for number, name in enumerate(sorted(list_dirs(path)))}


class Label:
    """A label (`paddle.utils.preprocess_util.Label`): its number and its name."""

    def __init__(self, label: int, name: str) -> None:
        self.label, self.name = label, name

    def convert_to_paddle_format(self) -> int:
        """The number of the label, as batches store it."""
        return int(self.label)

    def __hash__(self) -> int:
        return hash(self.label)


class Dataset:
    """Items, each a tuple of objects with `convert_to_paddle_format` (`paddle.utils.preprocess_util.Dataset`).

    Args:
        data: the items.
        keys: what their objects are called, in order.
    """

    def __init__(self, data: list[Any], keys: Sequence[str]) -> None:
        self.data, self.keys = data, keys

    def check_valid(self) -> None:
        """AssertionError unless every item has an object for each key."""
        for item in self.data:
            if len(item) != len(self.keys):
                raise AssertionError(f"an item of {len(item)} objects, expected {', '.join(self.keys)}")

    def permute(self, key_id: int | None, num_per_batch: int) -> None:
        """`permute_by_key`, or `uniform_permute` if `key_id` is None."""
        if key_id is None:
            self.uniform_permute()
        else:
            self.permute_by_key(key_id, num_per_batch)

    def uniform_permute(self) -> None:
        """Put the items in a random order, by Python's `random`."""
        random.shuffle(self.data)

    def permute_by_key(self, key_id: int, num_per_batch: int) -> None:
        """Put the items in a random order in which every batch has as many of each label.

        Args:
            key_id: which object of an item is the `Label`.
            num_per_batch: how many items a batch has.

        Raises:
            ValueError: there are so many labels that a batch has no two items of each.
        """
        by_label: dict[Any, list[Any]] = {}
        for item in self.data:
            by_label.setdefault(item[key_id].label, []).append(item)
        for items in by_label.values():
            random.shuffle(items)
        share = -(-num_per_batch // max(len(by_label), 1))
        if share < 2:
            raise ValueError(
                f"batches of {num_per_batch} items have less than two of each of {len(by_label)} labels: "
                "let batches be larger"
            )
        longest = max((len(items) for items in by_label.values()), default=0)
        starts = range(0, longest, share)
        self.data = [item for k in starts for items in by_label.values() for item in items[k : k + share]]


class DataBatcher:
    """Writes two data sets as batches (`paddle.utils.preprocess_util.DataBatcher`).

    Args:
        train_data, test_data: a `Dataset` each, of the same keys; AssertionError if they differ.
        label_set: numbers of labels by name.
    """

    def __init__(self, train_data: Dataset, test_data: Dataset, label_set: dict[str, int]) -> None:
        if train_data.keys != test_data.keys:
            raise AssertionError(f"train_data has the keys {train_data.keys}, test_data {test_data.keys}")
        self.train_data, self.test_data, self.label_set = train_data, test_data, label_set
        self.num_per_batch = 5000

    def create_batches_and_list(
        self, output_path: str, train_list_name: str, test_list_name: str, label_set_name: str
    ) -> None:
        """Write the batches of both, a list file of each, and the numbers of the labels, to `output_path`."""
        for data, kind, name in (
            (self.train_data, "train_", train_list_name),
            (self.test_data, "test_", test_list_name),
        ):
            batches = self.create_batches(data, output_path, kind, self.num_per_batch)
            save_list(batches, os.path.join(output_path, name))
        save_file(self.label_set, os.path.join(output_path, label_set_name))

    def create_batches(
        self, data: Dataset, output_path: str, prefix: str = "", num_data_per_batch: int = 5000
    ) -> list[str]:
        """Write the batches of one to files `PREFIXbatch_000` and so on in `output_path`; returns their paths."""
        data.check_valid()
        paths = []
        for number, first in enumerate(range(0, len(data.data), num_data_per_batch)):
            items = data.data[first : first + num_data_per_batch]
            batch = {
                key: [item[slot].convert_to_paddle_format() for item in items]
                for slot, key in enumerate(data.keys)
            }
            paths.append(os.path.join(output_path, f"{prefix}batch_{number:03d}"))
            save_file(batch, paths[-1])
        return paths


class DatasetCreater:
    """Makes batches of the folders `train` and `test` in a folder (`paddle.utils.preprocess_util.DatasetCreater`).

    To derive from: a class has `create_dataset_from_dir`, or `create_dataset_from_list` where `from_list` is set,
    and `create_meta_file`. Attributes name what is read and written.
    """

    keys: Sequence[str]

    def __init__(self, data_path: str) -> None:
        self.data_path = data_path
        self.train_dir_name, self.test_dir_name, self.batch_dir_name = "train", "test", "batches"
        self.num_per_batch = 50000
        self.meta_filename, self.label_set_name = "batches.meta", "labels.pkl"
        self.train_list_name, self.test_list_name = "train.list", "test.list"
        self.output_path = os.path.join(data_path, self.batch_dir_name)
        self.overwrite = False
        self.permutate_key = "labels"
        self.from_list = False
        self.num_classes = 0

    def create_meta_file(self, data: Dataset) -> None:
        """Write the description of the training data."""
        raise NotImplementedError

    def create_dataset(self, path: str) -> tuple[Dataset, dict[str, int]]:
        """The data set at `path` and the numbers of its labels."""
        return self.create_dataset_from_list(path) if self.from_list else self.create_dataset_from_dir(path)

    def create_dataset_from_list(self, path: str) -> tuple[Dataset, dict[str, int]]:
        """The data set that a file lists."""
        raise NotImplementedError

    def create_dataset_from_dir(self, path: str) -> tuple[Dataset, dict[str, int]]:
        """The data set in a folder."""
        raise NotImplementedError

    def create_batches(self) -> str:
        """Write batches, lists and the meta file, unless they are there; returns the folder.

        Raises AssertionError if the training data and the test data have other labels.
        """
        folder = os.path.join(self.data_path, self.batch_dir_name)
        os.makedirs(folder, exist_ok=True)
        if not self.overwrite and os.path.exists(os.path.join(folder, self.train_list_name)):
            return folder
        train, labels = self.create_dataset(os.path.join(self.data_path, self.train_dir_name))
        test, others = self.create_dataset(os.path.join(self.data_path, self.test_dir_name))
        train.permute(self.keys.index(self.permutate_key), self.num_per_batch)
        if labels != others:
            raise AssertionError(f"the training data has the labels {labels}, the test data {others}")
        batcher = DataBatcher(train, test, labels)
        batcher.num_per_batch = self.num_per_batch
        batcher.create_batches_and_list(
            self.output_path, self.train_list_name, self.test_list_name, self.label_set_name
        )
        self.num_classes = len(labels)
        self.create_meta_file(train)
        return folder


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
