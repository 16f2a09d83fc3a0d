"""Turns formulas into MathML while the site is built, so that no script has to be loaded to show them.

The arithmatex extension marks what is a formula; latex2mathml, a pure Python package, translates it; every current
browser renders the result itself. What cannot be translated is a warning, which a strict build does not pass.
"""

from __future__ import annotations

import html
import logging
import re
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.pages import Page

log = logging.getLogger("mkdocs.hooks.mathml")

_FORMULA = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)
_LETTERS = re.compile(r'(?:<mi mathvariant="(normal|monospace)">[^<]</mi>){2,}')
# A single upright letter arrives as a character reference, which distinguishes it from an italic one.
_LETTER = re.compile(r"<mi>&#x000([4-7][0-9A-F]);</mi>")
_TAG = re.compile(r"<[^>]*>")


def on_page_content(content: str, *, page: Page, **_: Any) -> str:
    """Replace the formulas of a page."""

    def replace(match: re.Match[str]) -> str:
        tex = html.unescape(match[2]).strip()
        return to_mathml(tex[2:-2], display=match[1] == "div", where=page.file.src_uri)

    return _FORMULA.sub(replace, content)


def to_mathml(tex: str, *, display: bool, where: str) -> str:
    r"""Translate one formula.

    Example:
        >>> "<mi>Dir</mi>" in to_mathml(r"\mathrm{Dir}(\alpha)", display=False, where="here")
        True
    """
    try:
        mathml = convert(tex, display="block" if display else "inline")
    except Exception as error:  # whatever it is, the page must not be built without its formula
        log.warning("%s: the formula %r cannot be translated: %r", where, tex, error)
        return html.escape(tex)
    if "\\" in mathml or "<mi>&</mi>" in mathml:
        log.warning("%s: the formula %r has parts that MathML does not know", where, tex)
    mathml = _LETTER.sub(lambda match: f'<mi mathvariant="normal">{chr(int(match[1], 16))}</mi>', mathml)
    mathml = _LETTERS.sub(_join, mathml)
    return f'<div class="formula">{mathml}</div>' if display else mathml


def _join(match: re.Match[str]) -> str:
    """One element for a word, which browsers space and style as a word; they do not know typewriter letters."""
    word = _TAG.sub("", match[0])
    return f"<mi>{word}</mi>" if match[1] == "normal" else f'<mtext class="typewriter">{word}</mtext>'
