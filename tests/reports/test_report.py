"""The report page: whole, self-contained, and safe against what is put into it."""

from __future__ import annotations

import base64
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from evidentia.reports.report import Report, draw_both
from evidentia.reports.style import new_axes, new_figure


class _Outline(HTMLParser):
    """Collects tags, and checks that they are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in {"meta", "link", "img", "source"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def _report() -> Report:
    report = Report("A <b>title</b> & more")
    report.section("Results").paragraph("1 < 2")
    report.table(("name", "value"), [("<script>alert(1)</script>", "0.5")], caption="one row")
    report.figure(new_axes().figure, caption='an "empty" plot')
    return report


def test_page_is_well_formed_and_escaped() -> None:
    outline = _Outline()
    outline.feed(_report().html())
    assert outline.open == []
    assert "script" not in outline.seen
    assert "<script>alert(1)</script>" in outline.text
    assert "1 < 2" in outline.text


def test_cells_may_be_numbers() -> None:
    report = Report("Numbers")
    report.table(("name", "value"), [("a", 0.5), (1, None)])
    outline = _Outline()
    outline.feed(report.html())
    assert {"0.5", "1", "None"} <= set(outline.text)


def test_page_has_its_parts() -> None:
    outline = _Outline()
    outline.feed(_report().html())
    counts = {tag: outline.seen.count(tag) for tag in ("h1", "h2", "table", "img", "figure", "figcaption")}
    assert counts == {"h1": 1, "h2": 1, "table": 1, "img": 1, "figure": 2, "figcaption": 2}


def test_page_needs_no_network() -> None:
    page = _report().html()
    assert "http:" not in page
    assert "https:" not in page
    assert 'src="data:image/png;base64,' in page


def test_save_writes_the_page(tmp_path: Path) -> None:
    report = _report()
    report.save(tmp_path / "deep" / "report.html")
    text = (tmp_path / "deep" / "report.html").read_text()
    assert text.startswith("<!doctype html>")
    assert text.endswith("</html>\n")


@pytest.mark.parametrize(("points", "pictures"), [(50, 0), (3000, 1)])
def test_many_points_are_one_picture_inside_the_drawing(points: int, pictures: int) -> None:
    places = np.random.default_rng(0).random((points, 2))

    def draw() -> Figure:
        figure, (ax,) = new_figure()
        ax.scatter(*places.T)
        ax.set_title("a title")
        return figure

    drawn = draw_both((draw, "points"))
    svg = base64.b64decode(drawn.light.partition(",")[2]).decode()
    assert svg.count("<image") == pictures
    assert ">a title</text>" in svg
    assert len(svg) < 200_000
    assert draw_both((draw, "points")) == drawn
    assert drawn.light != drawn.dark


def test_wide_figures_get_a_row_of_their_own_and_small_ones_share_it() -> None:
    narrow, wide = (draw_both((lambda width=width: new_figure(width=width)[0], "empty")) for width in (5.0, 9.0))
    assert (narrow.wide, wide.wide) == (False, True)
    report = Report("Sizes")
    report.drawn([narrow, wide], small=True)
    report.drawn([])
    page = report.html()
    assert page.count('<div class="figures small">') == 1
    assert page.count('<figure class="wide"><div class="scroll">') == 1
    outline = _Outline()
    outline.feed(page)
    assert not outline.open
