"""How long work shows how far it is: one bar for all of it, on the terminal's error stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def progress_bar(
    what: str, total: int, *, done: int = 0, shown: bool = True, stays: bool = False
) -> Iterator[Callable[[int, str], None]]:
    """Show a bar inside a `with` block, and give the function that moves it.

    Args:
        what: stands before the bar.
        total: how many steps there are to be.
        done: how many were done before, as in a run that is taken up again.
        shown: whether there is to be a bar at all.
        stays: whether the bar is left standing at the end.

    Example:
        >>> with progress_bar("training", 3, shown=False) as advance:
        ...     for step in range(3):
        ...         advance(step + 1, "loss 0.1")
    """
    # Names of data and studies are in them, whose square brackets are no markup.
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}", markup=False),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    # A file would get an empty line for each bar that goes away again.
    seen = stays or console.is_terminal or console.is_jupyter
    with Progress(*columns, console=console, transient=not stays, disable=not (shown and seen)) as bar:
        task = bar.add_task(what, total=total, completed=done, figures="")
        yield lambda completed, figures: bar.update(task, completed=completed, figures=figures)
