"""The report page: whole, self-contained, and safe against what is put into it."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from evidentia.reports.report import Report
from evidentia.reports.style import new_axes


class _Outline(HTMLParser):
    """Collects tags, and checks that they are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in {"meta", "link", "img"}:
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
