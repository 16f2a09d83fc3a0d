"""A report in one HTML file: no network, readable on a phone, in print, in light and dark."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from evidentia._support.files import write_text
from evidentia._version import __version__
from evidentia.reports.page import SCRIPT, STYLE
from evidentia.reports.style import on_paper, plain_text, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Drawing: TypeAlias = tuple[Callable[[], "Figure"], str]
"""What draws a figure anew whenever it is called, and its caption."""

_VERDICTS = {"above": "verdict above", "within noise": "verdict", "below": "verdict below"}
# A browser that shows the page fetches nothing, whatever stands in it.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
_LONG = 60
# Inches; a wider figure gets a row of its own, and on a phone scrolls in place of being shrunk until none can read it.
_WIDE = 7.5
# Points or areas of more corners than this are one picture inside the drawing, which else becomes megabytes large.
_MOST_CORNERS = 1000
_DOTS_PER_INCH = 120


@dataclass(frozen=True)
class Drawn:
    """A figure, drawn for light and for dark paper.

    Attributes:
        light: the address of an SVG picture.
        dark: the same on dark paper.
        caption: also serves readers who cannot see it.
        wide: whether it needs the whole width of a page.
    """

    light: str
    dark: str
    caption: str
    wide: bool


def draw_both(drawing: Drawing) -> Drawn:
    """Draw a figure for light and for dark paper."""
    draw, caption = drawing
    (light, width), (dark, _) = (_vector(draw, theme == "dark") for theme in ("light", "dark"))
    return Drawn(light, dark, caption, width > _WIDE)


class Report:
    """Collects paragraphs, tables and figures, and writes them as one HTML file.

    Args:
        title: the heading of the report.

    Example:
        >>> report = Report("Digits")
        >>> report.section("Results").paragraph("Two of three are right.")
        >>> '<h2 id="results">Results</h2>' in report.html()
        True
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._parts: list[str] = []
        self._names: set[str] = set()
        self._scripted = False

    def section(self, heading: str) -> Report:
        """Begin a section."""
        self._parts.append(f'<h2 id="{self._anchor(heading)}">{html.escape(heading)}</h2>')
        return self

    def subsection(self, heading: str) -> Report:
        """Begin a part of a section."""
        self._parts.append(f"<h3>{html.escape(heading)}</h3>")
        return self

    def paragraph(self, text: str) -> None:
        """Add a paragraph of plain text; what stands between backticks is code."""
        pieces = html.escape(text).split("`")
        marked = "".join(f"<code>{piece}</code>" if index % 2 else piece for index, piece in enumerate(pieces))
        self._parts.append(f"<p>{marked}</p>")

    def details(self, summary: str, text: str) -> None:
        """Add a text that is shown when the reader asks for it."""
        self._parts.append(
            f"<details><summary>{html.escape(summary)}</summary><pre>{html.escape(text)}</pre></details>"
        )

    def table(
        self,
        header: Sequence[str],
        rows: Iterable[Sequence[object]],
        caption: str = "",
        *,
        words: int = 1,
        filters: Sequence[str] | None = None,
    ) -> None:
        """Add a table.

        Args:
            header: the headings.
            rows: a text a cell, or what has one, such as a number.
            caption: what stands below.
            words: how many columns hold words and are aligned left; the others are aligned right.
            filters: the headings of columns by whose values the reader can filter; the columns can then be sorted too.
        """

        def cell(tag: str, column: int, content: object) -> str:
            text = str(content)
            worded = column < words or header[column] == "verdict"
            kinds = [_VERDICTS[text]] if tag == "td" and text in _VERDICTS else ["word"] if worded else []
            kinds += ["long"] if tag == "td" and len(text) > _LONG else []
            marks = (' scope="col"' if tag == "th" else "") + (f' class="{" ".join(kinds)}"' if kinds else "")
            return f"<{tag}{marks}>{html.escape(text)}</{tag}>"

        def line(tag: str, cells: Sequence[object]) -> str:
            return f"<tr>{''.join(cell(tag, *numbered) for numbered in enumerate(cells))}</tr>"

        marks = ""
        if filters is not None:
            # An attribute may hold lines; a heading does not.
            marks = f' class="sorted" data-filters="{html.escape(chr(10).join(filters), quote=True)}"'
            self._scripted = True
        below = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
        self._parts.append(
            f'<figure><div class="scroll"><table{marks}><thead>{line("th", header)}</thead>'
            f"<tbody>{''.join(line('td', row) for row in rows)}</tbody></table></div>{below}</figure>"
        )

    def figure(self, figure: Figure, caption: str) -> None:
        """Add a matplotlib figure as it is; the caption also serves readers who cannot see it."""
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=150, bbox_inches="tight", facecolor="white")
        data = base64.b64encode(buffer.getvalue()).decode()
        text = html.escape(caption, quote=True)
        self._parts.append(
            f'<figure><img alt="{text}" src="data:image/png;base64,{data}"><figcaption>{text}</figcaption></figure>'
        )

    def drawings(self, drawings: Iterable[Drawing]) -> None:
        """Add figures side by side where there is room, each drawn for light and for dark paper.

        Args:
            drawings: what draws a figure anew whenever it is called, and its caption.
        """
        self.drawn([draw_both(drawing) for drawing in drawings])

    def drawn(self, figures: Sequence[Drawn], *, small: bool = False) -> None:
        """Add figures that are drawn already, side by side where there is room.

        Args:
            figures: of `draw_both`.
            small: whether more of them than usual have room beside each other.
        """
        pictures = []
        for figure in figures:
            text = html.escape(figure.caption, quote=True)
            opened = '<figure class="wide"><div class="scroll">' if figure.wide else "<figure><div>"
            pictures.append(
                f'{opened}<picture><source media="screen and (prefers-color-scheme: dark)" srcset="{figure.dark}">'
                f'<img alt="{text}" src="{figure.light}"></picture></div><figcaption>{text}</figcaption></figure>'
            )
        if pictures:
            kind = "figures small" if small else "figures"
            self._parts.append(f'<div class="{kind}">{"".join(pictures)}</div>')

    def html(self) -> str:
        """The whole page."""
        made = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        title = html.escape(self.title)
        script = f"<script>{SCRIPT}</script>" if self._scripted else ""
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<link rel="icon" href="data:,"><title>{title}</title><style>{STYLE}</style></head><body>'
            f'<h1>{title}</h1><p class="made">evidentia {__version__}, {made}</p>'
            f"{''.join(self._parts)}{script}</body></html>\n"
        )

    def save(self, path: str | Path) -> None:
        """Write the page to a file, whole or not at all."""
        write_text(path, self.html())

    def _anchor(self, heading: str) -> str:
        name = "-".join("".join(sign if sign.isalnum() else " " for sign in heading.lower()).split()) or "section"
        while name in self._names:
            name += "-"
        self._names.add(name)
        return name


def _vector(draw: Callable[[], Figure], dark: bool) -> tuple[str, float]:
    """A figure as the address of an SVG picture, the same whenever it is drawn, its letters as text; and its width."""
    matplotlib = require_matplotlib()
    from matplotlib.collections import Collection

    buffer = io.BytesIO()
    settings = {"svg.hashsalt": "evidentia", "svg.fonttype": "none"}
    with on_paper(dark), plain_text(), matplotlib.rc_context(settings):
        figure = draw()
        for part in figure.findobj(Collection):
            corners = sum(len(path) for path in part.get_paths())
            part.set_rasterized(len(np.asarray(part.get_offsets())) + corners > _MOST_CORNERS)
        about = {"Date": None}
        figure.savefig(buffer, format="svg", transparent=True, bbox_inches="tight", dpi=_DOTS_PER_INCH, metadata=about)
    return f"data:image/svg+xml;base64,{base64.b64encode(buffer.getvalue()).decode()}", figure.get_figwidth()
