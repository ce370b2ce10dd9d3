"""`paddle.utils.plotcurve`."""

import io

import pytest

from fluidlite.paddle.utils import plotcurve

pyplot = pytest.importorskip("matplotlib.pyplot")

LOG = """\
I0406 Trainer.cpp:601]  Pass=0 Batch=7771 AvgCost=6.2e-1 CurrentCost=0.5 Eval: error=0.26 CurrentEval: error=0.2
I0406 Tester.cpp:115]  Test samples=100 AvgCost=0.7 Eval: error=0.30
something else
I0406 Trainer.cpp:601]  Pass=1 Batch=7771 AvgCost=0.52 CurrentCost=0.5 Eval: error=0.25 CurrentEval: error=0.2
"""


@pytest.fixture
def drawn(monkeypatch):
    """The curves of the last picture: label -> points."""
    found = {}

    def plot(*args, label, **options):
        found[label] = [list(each) for each in args if not isinstance(each, str)]
        return real(*args, label=label, **options)

    real = pyplot.plot
    monkeypatch.setattr(pyplot, "plot", plot)
    return found


def test_values_of_a_log(drawn):
    picture = io.BytesIO()
    plotcurve.plot_paddle_curve(["AvgCost", "error"], io.StringIO(LOG), picture)
    assert drawn == {"AvgCost": [[0, 1], [0.62, 0.52]], "error": [[0, 1], [0.26, 0.25]]}
    assert picture.getvalue()[:4] == b"\x89PNG"
    drawn.clear()
    more = LOG + "Test samples=100 AvgCost=0.6 Eval: error=0.3\n"
    plotcurve.plot_paddle_curve([], more.splitlines(), picture)
    assert drawn == {"AvgCost": [[0, 1], [0.62, 0.52]], "Test AvgCost": [[0, 1], [0.7, 0.6]]}


def test_nothing_to_draw(capsys):
    picture = io.BytesIO()
    plotcurve.plot_paddle_curve(["cost"], LOG.splitlines(), picture)
    assert capsys.readouterr().out == "No data to plot. Exiting!\n" and not picture.getvalue()


def test_as_a_command(tmp_path, drawn):
    (tmp_path / "log").write_text(LOG)
    out = tmp_path / "curve.svg"
    plotcurve.main(["-i", str(tmp_path / "log"), "-o", str(out), "--format", "svg", "error"])
    assert list(drawn) == ["error"] and out.read_text().startswith("<?xml")
