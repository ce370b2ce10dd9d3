"""Colours of images changed at random. What is expected was recorded from Paddle 1.8.5."""

import random

import numpy as np
import pytest

from fluidlite.paddle.incubate.hapi import vision
from fluidlite.paddle.incubate.hapi.vision import transforms

IMAGE = np.random.RandomState(0).randint(0, 256, (2, 3, 3)).astype("uint8")
RECORDED = {
    ("BrightnessTransform", 1.5): "255 70 175 255 100 255 255 154 13 255 31 255 54 130 105 255 132 210",
    ("ContrastTransform", 0.5): "136 74 109 146 84 176 148 102 55 156 61 171 68 94 85 158 94 120",
    ("ContrastTransform", 1.5): "207 19 124 237 49 255 241 103 0 255 0 255 3 79 54 255 81 159",
    ("SaturationTransform", 0.0): "82 82 82 136 136 136 85 85 85 108 108 108 76 76 76 118 118 118",
    ("SaturationTransform", 1.5): "216 29 134 219 32 255 249 111 0 255 0 255 15 92 66 255 72 150",
    ("HueTransform", 0.0): "172 47 121 188 67 251 195 101 9 208 21 242 36 87 70 216 88 142",
    ("HueTransform", -0.1): "172 47 47 251 67 206 180 195 9 242 21 146 36 74 87 216 109 88",
    ("HueTransform", 0.25): "47 53 172 67 214 251 195 9 193 21 156 242 78 87 36 100 88 216",
}


@pytest.mark.parametrize(("name", "drawn"), sorted(RECORDED))
def test_recorded(monkeypatch, name, drawn):
    asked = []
    monkeypatch.setattr(np.random, "uniform", lambda *limits: asked.append(limits) or drawn)
    made = getattr(vision, name)(0.4)(IMAGE)
    assert made.dtype == np.uint8 and asked == [(-0.4, 0.4) if name == "HueTransform" else (0.6, 1.4)]
    want = np.array(RECORDED[name, drawn].split(), int)  # of a small image, whose hues Fluid rounds
    np.testing.assert_allclose(made.ravel(), want, atol=1 if name == "HueTransform" else 0)


def test_floats_stay_floats_and_zero_changes_nothing(monkeypatch):
    monkeypatch.setattr(np.random, "uniform", lambda *limits: 0.5)
    made = transforms.SaturationTransform(0.4)(IMAGE.astype("float32"))
    assert made.dtype == np.float32
    np.testing.assert_allclose(
        made.ravel()[:4], [127.08999633, 64.58999633, 99.58999633, 164.13299560], rtol=1e-6
    )
    for name in ("BrightnessTransform", "ContrastTransform", "SaturationTransform", "HueTransform"):
        assert getattr(transforms, name)(0)(IMAGE) is IMAGE


def test_jitter_draws_the_order_once():
    random.seed(2)
    jitter = vision.ColorJitter(0.4, 0.4, 0.4, 0.4)
    names = ["ContrastTransform", "SaturationTransform", "HueTransform", "BrightnessTransform"]
    assert [type(one).__name__ for one in jitter.transforms] == names
    np.random.seed(0)
    assert jitter(IMAGE).shape == IMAGE.shape and not np.array_equal(jitter(IMAGE), IMAGE)
    assert vision.ColorJitter().transforms == [] and vision.ColorJitter()(IMAGE) is IMAGE


@pytest.mark.parametrize(
    ("name", "value"), [("Brightness", -1), ("Contrast", -0.1), ("Saturation", -2), ("Hue", 0.6)]
)
def test_limits(name, value):
    with pytest.raises(ValueError, match=f"{name.lower()} value should be"):
        getattr(transforms.transforms, f"{name}Transform")(value)
