"""Lets the reference show the "Example:" of a docstring as code.

The parser knows the heading in the plural only, and takes the singular for a note in prose.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_HEADING = re.compile(r"^(\s*)Example:$", re.MULTILINE)


class PluralExamples(griffe.Extension):
    """Reads "Example:" as "Examples:"."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the heading before the docstring is parsed."""
        if obj.docstring:
            obj.docstring.value = _HEADING.sub(r"\1Examples:", obj.docstring.value)
