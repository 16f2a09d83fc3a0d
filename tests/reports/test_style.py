"""What all plots share: axes given or made, files of both formats, dark paper, no pyplot, no matplotlib."""

from __future__ import annotations

import sys
from xml.etree import ElementTree

import matplotlib
import matplotlib.style
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from evidentia import BinomialOpinion, EvidentiaError, MissingExtraError
from evidentia.reports import (
    PALETTE,
    new_axes,
    new_figure,
    plot_histograms,
    plot_opinion_triangle,
    plot_precision_recall,
    plot_reliability,
    plot_risk_coverage,
    plot_roc,
    plot_simplex,
    save_figure,
)

PLOTS = {
    "simplex": lambda ax=None: plot_simplex([4.0, 3.0, 2.0], ax=ax),
    "triangle": lambda ax=None: plot_opinion_triangle(BinomialOpinion(0.5, 0.2, 0.3), ax=ax, labels=["w"]),
    "reliability": lambda ax=None: plot_reliability([0.9, 0.1, 0.6], [1, 0, 0], ax=ax),
    "histograms": lambda ax=None: plot_histograms({"right": [0.1], "wrong": [0.7]}, "vacuity", ax=ax),
    "roc": lambda ax=None: plot_roc({"vacuity": [0.1, 0.2, 0.7]}, [0, 1, 1], ax=ax),
    "precision-recall": lambda ax=None: plot_precision_recall({"vacuity": [0.1, 0.2, 0.7]}, [0, 1, 1], ax=ax),
    "risk-coverage": lambda ax=None: plot_risk_coverage({"vacuity": [0.1, 0.2, 0.7]}, [0, 1, 1], ax=ax),
}


@pytest.fixture(params=PLOTS.values(), ids=PLOTS)
def plot(request):
    return request.param


def test_a_plot_draws_on_the_axes_it_is_given(plot):
    _, axes = new_figure(columns=2, width=8.0)
    assert plot(axes[1]) is axes[1]
    assert axes[1].has_data()
    assert not axes[0].has_data()


def test_no_plot_opens_a_pyplot_figure(plot, tmp_path):
    save_figure(plot().figure, tmp_path / "plot.png", dpi=50)
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def test_every_plot_fits_on_its_figure(plot):
    ax = plot()
    FigureCanvasAgg(ax.figure).draw()
    box, paper = ax.get_tightbbox(), ax.figure.bbox
    assert box.x0 >= -1
    assert box.y0 >= -1
    assert box.x1 <= paper.width + 1
    assert box.y1 <= paper.height + 1


def test_every_plot_can_be_saved_in_both_formats(plot, tmp_path):
    figure = plot().figure
    save_figure(figure, tmp_path / "deep" / "plot.png", dpi=50)
    with Image.open(tmp_path / "deep" / "plot.png") as image:
        assert image.size == tuple((figure.get_size_inches() * 50).round())
    save_figure(figure, tmp_path / "plot.SVG")
    assert ElementTree.parse(tmp_path / "plot.SVG").getroot().tag.endswith("svg")


def test_every_plot_can_be_drawn_on_dark_paper(plot):
    with matplotlib.style.context("dark_background"):
        canvas = FigureCanvasAgg(plot().figure)
        canvas.draw()
    assert np.asarray(canvas.buffer_rgba())[..., :3].mean() < 100


@pytest.mark.parametrize("name", ["plot.svg", "plot.png"])
def test_the_same_figure_gives_the_same_bytes(name, tmp_path):
    for folder in ("first", "second"):
        save_figure(PLOTS["roc"]().figure, tmp_path / folder / name, dpi=50)
    assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


@pytest.mark.parametrize("name", ["plot.pdf", "plot", "png"])
def test_other_formats_are_refused(name, tmp_path):
    with pytest.raises(EvidentiaError, match=r"saved as \.png or \.svg"):
        save_figure(new_axes().figure, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "plot.png"
    path.write_bytes(b"old")
    figure = new_axes().figure
    monkeypatch.setattr(figure, "savefig", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_figure(figure, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_without_matplotlib_the_error_names_the_extra(plot, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"needs matplotlib.*pip install 'evidentia\[report\]'"):
        plot()


def test_colours_are_six_and_differ():
    assert len(set(PALETTE)) == len(PALETTE) == 6


def test_axes_of_a_figure_come_row_by_row():
    figure, axes = new_figure(rows=2, columns=3)
    assert figure.axes == axes
    places = [ax.get_subplotspec() for ax in axes]
    assert [(place.rowspan.start, place.colspan.start) for place in places] == [
        (row, column) for row in range(2) for column in range(3)
    ]
