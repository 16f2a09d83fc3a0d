"""Where commands print."""

from __future__ import annotations

from rich.console import Console


def plain_console(*, stderr: bool = False) -> Console:
    """A console that prints every text as it is, tables and their titles with it.

    Names that users give may hold square brackets, which are no markup, and words between colons, which are no emoji.

    Args:
        stderr: whether it prints what is said beside the results.

    Example:
        >>> plain_console().print("dog [bark], [/valve], :bell:")
        dog [bark], [/valve], :bell:
    """
    return Console(stderr=stderr, markup=False, emoji=False)
