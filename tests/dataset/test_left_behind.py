"""Names of other packages in Fluid's data sets: the probe of OpenCV's import, NLTK's corpus."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from fluidlite.dataset import image, sentiment


def test_how_importing_opencv_went():
    started = image.import_cv2_proc
    assert isinstance(started, subprocess.Popen) and started.args[1:] == ["-c", "import cv2"]
    assert image.retcode == started.returncode and isinstance(image.out, bytes)
    assert (image.retcode == 0) == (b"Error" not in image.err)
    assert image.import_cv2_proc is started


def test_the_corpus_is_that_of_nltk(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk.corpus", SimpleNamespace(movie_reviews=["words"]))
    assert sentiment.movie_reviews.index("words") == 0
    monkeypatch.setitem(sys.modules, "nltk.corpus", None)
    with pytest.raises(ImportError, match="pip install nltk"):
        sentiment.movie_reviews.words()
