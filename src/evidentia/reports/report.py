"""A report in one HTML file: no network, no script, readable on a phone, in print, in light and dark."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from evidentia._support.files import write_text
from evidentia._version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
:root { color-scheme: light dark;
        --ink: #1b1f24; --paper: #ffffff; --faint: #5b6570; --line: #d5dae0; --tint: #f3f6f9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --paper: #14171b; --faint: #9aa4af; --line: #343b43; --tint: #1d2228; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 60rem; background: var(--paper); color: var(--ink);
       font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; }
p.made { color: var(--faint); margin-top: 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid var(--line); }
tbody tr:nth-child(even) { background: var(--tint); }
figure { margin: 1rem 0; }
figure img { width: 100%; height: auto; background: #fff; border-radius: 6px; }
figcaption { color: var(--faint); font-size: .9rem; padding-top: .4rem; }
@media print { body { max-width: none; } h2 { break-after: avoid; } figure, table { break-inside: avoid; } }
"""


class Report:
    """Collects paragraphs, tables and figures, and writes them as one HTML file.

    Args:
        title: the heading of the report.

    Example:
        >>> report = Report("Digits")
        >>> report.section("Results").paragraph("Two of three are right.")
        >>> "<h2>Results</h2>" in report.html()
        True
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._parts: list[str] = []

    def section(self, heading: str) -> Report:
        """Begin a section."""
        self._parts.append(f"<h2>{html.escape(heading)}</h2>")
        return self

    def paragraph(self, text: str) -> None:
        """Add a paragraph of plain text."""
        self._parts.append(f"<p>{html.escape(text)}</p>")

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> None:
        """Add a table; the first column is aligned left, the others right."""
        head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in header)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        below = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
        self._parts.append(
            f'<figure><div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
            f"{below}</figure>"
        )

    def figure(self, figure: Figure, caption: str) -> None:
        """Add a matplotlib figure; the caption also serves readers who cannot see it."""
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=150, bbox_inches="tight", facecolor="white")
        data = base64.b64encode(buffer.getvalue()).decode()
        text = html.escape(caption, quote=True)
        self._parts.append(
            f'<figure><img alt="{text}" src="data:image/png;base64,{data}"><figcaption>{text}</figcaption></figure>'
        )

    def html(self) -> str:
        """The whole page."""
        made = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        title = html.escape(self.title)
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<link rel="icon" href="data:,"><title>{title}</title><style>{_STYLE}</style></head><body>'
            f'<h1>{title}</h1><p class="made">evidentia {__version__}, {made}</p>'
            f"{''.join(self._parts)}</body></html>\n"
        )

    def save(self, path: str | Path) -> None:
        """Write the page to a file, whole or not at all."""
        write_text(path, self.html())
