"""How figures over seeds are written, and the tables that they stand in."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.table import Table


def titled_table(title: str, headings: Sequence[str], words: Collection[str] | None = None) -> Table:
    """A table under its title, still without rows: words on the left, figures on the right, published ones dim.

    On a narrow terminal cells go on in the next line, because a figure that is cut looks like another one.

    Args:
        title: in bold above it.
        headings: of its columns.
        words: which of them stand above words; by default the first.

    Example:
        >>> table = titled_table("Accuracy", ["method", "ours", "published"])
        >>> [each.justify for each in table.columns], table.columns[2].style
        (['left', 'right', 'right'], 'dim')
    """
    words = headings[:1] if words is None else words
    table = Table(title=title, title_justify="left", title_style="bold", header_style="")
    for heading in headings:
        style = "dim" if heading == "published" else None
        table.add_column(heading, justify="left" if heading in words else "right", style=style, overflow="fold")
    return table


def percent(mean: float, std: float | None) -> str:
    """A share in percent, with its standard deviation if there is one.

    Example:
        >>> percent(0.815, 0.02), percent(0.815, None)
        ('81.5 ± 2.0', '81.5')
    """
    return f"{100 * mean:.1f}" if std is None else f"{100 * mean:.1f} ± {100 * std:.1f}"


def over_seeds(count: int) -> str:
    """What figures over so many seeds are.

    Example:
        >>> over_seeds(5), over_seeds(1)
        ('mean ± sd over 5 seeds', 'one seed')
    """
    return f"mean ± sd over {count} seeds" if count > 1 else "one seed"
