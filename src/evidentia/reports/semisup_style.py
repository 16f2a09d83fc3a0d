"""What the pictures of a pool share: a colour for each verdict and for each truth, and names that fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evidentia.reports.style import blue, colour, paper, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

NOTE_SIZE = 8.0
# Inches that a character and a mark take in the legend.
_CHARACTER, _MARK = 0.075, 0.55
_UNDECIDED = "#BDBDBD"


def kept_colour() -> str:
    """The colour of what was kept."""
    return blue()


def thrown_colour() -> str:
    """The colour of what was thrown out."""
    return colour(3)


def in_colour() -> str:
    """The colour of what is in distribution: neither that of kept nor that of thrown out, which is another matter."""
    return colour(2)


def ood_colour() -> str:
    """The colour of what is out of distribution."""
    return colour(4)


def trust_colours() -> Colormap:
    """From thrown out (weight 0) over grey (weight 0.5) to kept (weight 1)."""
    require_matplotlib()
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("trust", [thrown_colour(), _UNDECIDED, kept_colour()])


def shortened(name: str, length: int = 12) -> str:
    """A name that is cut in the middle where it is longer than there is room, as names often differ at their end."""
    if len(name) <= length:
        return name
    end = (length - 1) // 2
    return f"{name[: length - 1 - end]}…{name[-end:]}"


def usual_range(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The smallest and the largest of each column but for what lies far beyond the rest, which no scale is to show.

    Far are more than five times the range of the middle nine tenths beyond it, as -9999 among numbers near 1 is. Where
    nine tenths are the same, nothing is far.

    Args:
        values: shape `(n, D)`.

    Example:
        >>> low, high = usual_range(np.array([[0.0], [0.5], [1.0]] * 50 + [[-9999.0]]))
        >>> float(low[0]), float(high[0])
        (0.0, 1.0)
    """
    least, most = np.quantile(values, [0.05, 0.95], axis=0)
    reach = 5 * (most - least)
    near = (values >= least - reach) & (values <= most + reach) | (reach == 0)
    return values.min(0, where=near, initial=np.inf), values.max(0, where=near, initial=-np.inf)


def legend_below(figure: Figure, handles: list[Any]) -> None:
    """One legend for all panels, below them, in as many lines as the width of the figure makes it."""
    if handles:
        widths = [_CHARACTER * len(handle.get_label()) + _MARK for handle in handles]
        width = figure.get_figwidth()
        room = len(handles) if sum(widths) < width else int(width / max(widths))
        figure.legend(
            handles=handles,
            loc="outside lower center",
            ncols=max(1, min(len(handles), room)),
            frameon=False,
            fontsize=9,
            handletextpad=0.5,
            columnspacing=1.8,
        )


def patch(label: str, shade: str, hatch: str | None = None) -> Any:
    """A filled square for the legend."""
    require_matplotlib()
    from matplotlib.patches import Patch

    return Patch(facecolor=shade, edgecolor=paper(), hatch=hatch, label=label, linewidth=0.0)


def dot(label: str, marker: str, shade: str, edge: str | None = None, size: float = 6.0) -> Any:
    """A marker for the legend."""
    require_matplotlib()
    from matplotlib.lines import Line2D

    # A cross has no inside: its colour is that of its edge.
    look: dict[str, Any] = {"markeredgecolor": edge or shade, "markerfacecolor": shade, "markersize": size}
    return Line2D([], [], linestyle="", marker=marker, label=label, **look)
