# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.utils.preprocess_util import (
    DataBatcher as DataBatcher,
    Dataset as Dataset,
    DatasetCreater as DatasetCreater,
    Label as Label,
    exclude_pattern as exclude_pattern,
    get_label_set_from_dir as get_label_set_from_dir,
    list_dirs as list_dirs,
    list_files as list_files,
    list_images as list_images,
    save_file as save_file,
    save_list as save_list,
)
