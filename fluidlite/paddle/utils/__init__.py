"""`paddle.utils`: tensors of other libraries (`dlpack`), curves (`plot`, `plotcurve`), images and batches of them."""

from . import dlpack, image_util, plot, preprocess_util
from .plot import Ploter

__all__ = ["Ploter", "dlpack", "image_util", "plot", "plotcurve", "preprocess_img", "preprocess_util"]
