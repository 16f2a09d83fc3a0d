"""What all plots share: colours, axes of their own figure, and saving. Nothing here touches pyplot's global state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evidentia._support.errors import EvidentiaError
from evidentia._support.extras import from_extra
from evidentia._support.files import check_writable, write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The colours of Okabe and Ito (2008), told apart with any colour vision; without black and yellow, which do not stand
# out on dark and on light paper. The order keeps neighbours far apart in lightness too.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY = PALETTE

# What tells lines and points apart without colour.
_MARKERS = "os^DvPX*"
MARKERS = len(_MARKERS)
_DASHES = ("-", "--", ":", "-.")

_FORMATS = {".png": "png", ".svg": "svg"}
_LABEL_SIZE, _TICK_SIZE, _TITLE_SIZE = 10.0, 9.0, 11.0


def require_matplotlib() -> Any:
    """The matplotlib package, or an error that says how to install it."""
    with from_extra("matplotlib", "report", "drawing a plot"):
        import matplotlib
    return matplotlib


def new_figure(
    *, rows: int = 1, columns: int = 1, width: float = 4.8, height: float = 3.6
) -> tuple[Figure, list[Axes]]:
    """A figure with a grid of axes, which pyplot does not know and which so need not be closed.

    Args:
        rows: how many rows of axes.
        columns: how many axes in each row.
        width: the width of the figure in inches.
        height: its height in inches.

    Returns:
        The figure, and its axes row by row.

    Example:
        >>> figure, axes = new_figure(rows=2, columns=3)
        >>> len(axes)
        6
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)  # type: ignore[union-attr, call-arg]
    return figure, [figure.add_subplot(rows, columns, place + 1) for place in range(rows * columns)]


def new_axes(figsize: tuple[float, float] = (4.8, 3.6)) -> Axes:
    """Axes alone on a figure of their own.

    Args:
        figsize: width and height of the figure in inches.

    Example:
        >>> ax = new_axes((4, 3))
        >>> ax.figure.get_size_inches().tolist()
        [4.0, 3.0]
    """
    width, height = figsize
    return new_figure(width=width, height=height)[1][0]


def check_by_name(values: Any) -> None:
    """Require a mapping, as what is drawn has its names in the legend."""
    if not isinstance(values, Mapping):
        raise EvidentiaError(
            f"what is drawn must be given by name, got {type(values).__name__}; give such as {{'vacuity': values}}"
        )


def save_figure(figure: Figure, path: str | Path, dpi: float = 200.0) -> None:
    """Write a figure to a PNG or SVG file, whole or not at all; the same figure gives the same bytes.

    Args:
        figure: the figure, `ax.figure` of any plot.
        path: where to; the suffix chooses the format, .png or .svg.
        dpi: dots an inch, for PNG and for pictures inside an SVG.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_figure(new_axes().figure, Path(folder) / "empty.svg")
        ...     [path.name for path in Path(folder).iterdir()]
        ['empty.svg']
    """
    kind = _format(path)
    matplotlib = require_matplotlib()
    # Without these two an SVG holds the date and random identifiers.
    metadata = {"Date": None} if kind == "svg" else None

    def write(part: Path) -> None:
        with matplotlib.rc_context({"svg.hashsalt": "evidentia"}):
            figure.savefig(part, format=kind, dpi=dpi, metadata=metadata)

    write_atomically(path, write)


def check_picture(path: str | Path) -> None:
    """See that `save_figure` could write to a path, before the work that the figure is to show.

    Raises:
        EvidentiaError: if the suffix is of no format that there is, or nothing can be written there.
        MissingExtraError: if matplotlib is not installed.
    """
    _format(path)
    require_matplotlib()
    check_writable(path)


def _format(path: str | Path) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMATS:
        raise EvidentiaError(f"a figure is saved as {' or '.join(_FORMATS)}, got the path {str(path)!r}")
    return _FORMATS[suffix]


@contextmanager
def on_paper(dark: bool) -> Iterator[None]:
    """Draw what is drawn in this block for dark paper, or for light, whatever matplotlib's style is."""
    ground, text = ("#14171b", "#e6e9ed") if dark else ("#ffffff", "#1b1f24")
    grounds = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
    inks = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    with require_matplotlib().rc_context(dict.fromkeys(grounds, ground) | dict.fromkeys(inks, text)):
        yield


@contextmanager
def plain_text() -> Iterator[None]:
    """Let a dollar in what is drawn in this block be a dollar: names that users give are no mathematics.

    A function whose whole picture it is for is decorated with it.

    Example:
        >>> with plain_text():
        ...     ax = new_axes()
        >>> ax.title.get_parse_math()
        False
    """
    with require_matplotlib().rc_context({"text.parse_math": False}):
        yield


def point_marker(index: int) -> str:
    """The marker of a group of points by its number; after the eighth they come again."""
    return _MARKERS[index % len(_MARKERS)]


def line_dashes(index: int) -> str:
    """The kind of a line by its number; after the fourth they come again."""
    return _DASHES[index % len(_DASHES)]


def colour(index: int) -> str:
    """A colour of the palette; past its end it starts again."""
    code = PALETTE[index % len(PALETTE)]
    swapped = {BLUE: SKY, SKY: BLUE}
    return swapped.get(code, code) if _on_dark() else code


def blue() -> str:
    """The first colour of the palette: the darker of its two blues on light paper, the lighter on dark."""
    return colour(0)


def ink() -> str:
    """The colour of text, which follows matplotlib's style, so that plots can be drawn on dark paper too."""
    return str(require_matplotlib().rcParams["text.color"])


def paper() -> str:
    """The colour behind the axes, which follows matplotlib's style as well."""
    return str(require_matplotlib().rcParams["axes.facecolor"])


def pale() -> str:
    """A grey near the paper, for areas that are there but do not matter; what is drawn in ink on it can be seen."""
    return "#454D56" if _on_dark() else "#D9D9D9"


def _on_dark() -> bool:
    require_matplotlib()
    from matplotlib.colors import to_rgb

    return sum(to_rgb(paper())) < 1.5


def label_axes(ax: Axes, x: str, y: str, title: str | None = None) -> None:
    """Name the axes, and give them the look that all plots with two scales share."""
    ax.set_xlabel(x, fontsize=_LABEL_SIZE)
    ax.set_ylabel(y, fontsize=_LABEL_SIZE)
    ax.tick_params(labelsize=_TICK_SIZE)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color=ink(), alpha=0.12, linewidth=0.6)
    ax.set_axisbelow(True)
    set_title(ax, title)


def set_title(ax: Axes, title: str | None) -> None:
    """Put a title above the axes, if there is one."""
    if title is not None:
        ax.set_title(title, fontsize=_TITLE_SIZE)


def add_legend(ax: Axes, loc: Literal["best", "upper left", "lower right"] = "best") -> None:
    """A legend without a frame, on a ground that lets lines shine through."""
    ax.legend(loc=loc, fontsize=_TICK_SIZE, framealpha=0.75, edgecolor="none", facecolor=paper())


def unit_square(ax: Axes) -> None:
    """Both scales from 0 to 1, as long as each other, with a little room so that lines on the border show."""
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_aspect("equal")


def triangle(ax: Axes) -> tuple[tuple[float, float], ...]:
    """Draw an equilateral triangle of side 1 without scales; its corners are left, right and top."""
    require_matplotlib()
    from matplotlib.patches import Polygon

    corners = ((0.0, 0.0), (1.0, 0.0), (0.5, 0.75**0.5))
    ax.add_patch(Polygon(corners, closed=True, fill=False, edgecolor=ink(), linewidth=1.2, zorder=3))
    ax.set_xlim(-0.12, 1.12)
    ax.set_ylim(-0.13, 0.98)
    ax.set_aspect("equal")
    ax.set_axis_off()
    return corners
