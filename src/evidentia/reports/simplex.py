"""The density of a Dirichlet distribution over three classes, on the triangle of all class probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from evidentia._support.checks import TensorLike, as_float_tensor, check_class_names
from evidentia._support.errors import EvidentiaError
from evidentia.opinions import MultinomialOpinion
from evidentia.reports.style import VERMILION, blue, ink, new_axes, require_matplotlib, set_title, triangle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 360
# A flat density has this share of the full colour, so that it can be told from the top of a peak.
_FLAT_SHADE = 0.25
# Where some alpha is below 1 the density has no bound at the border; there it is drawn as at this distance from it.
_BORDER = 0.02


def plot_simplex(
    opinion_or_alpha: MultinomialOpinion | TensorLike,
    ax: Axes | None = None,
    class_names: Sequence[str] | None = None,
    title: str | None = None,
) -> Axes:
    r"""Draw $\mathrm{Dir}(\alpha)$ on the simplex of three classes, and mark the projected probability.

    Corners are certainty of a class: the first left, the second right, the third on top. The shade is the density
    relative to its highest value; a flat density is drawn in a light, even shade. Only differences of log densities
    enter, so any strength can be drawn; a dogmatic opinion, which has no density, shows as its projected probability.

    Args:
        opinion_or_alpha: one opinion over three classes, or its Dirichlet parameters, shape `(3,)`.
        ax: where to draw; by default on a figure of its own.
        class_names: names of the three classes, by default "class 0" and so on.
        title: a title above the triangle.

    Example:
        >>> import evidentia as ev
        >>> ax = plot_simplex(ev.MultinomialOpinion.from_evidence([8.0, 2.0, 0.0]), class_names=["cat", "dog", "owl"])
        >>> [text.get_text() for text in ax.texts]
        ['cat', 'dog', 'owl']
    """
    alpha, projected = _parameters(opinion_or_alpha)
    if class_names is None:
        class_names = [f"class {k}" for k in range(3)]
    check_class_names(class_names)
    names = list(class_names)
    if len(names) != 3:
        raise EvidentiaError(f"class_names needs 3 names, got {len(names)}")
    ax = new_axes((3.6, 3.3)) if ax is None else ax
    corners = triangle(ax)

    if bool(torch.isfinite(alpha).all()):
        _draw_density(ax, alpha, corners)
    x, y = (projected @ torch.tensor(corners, dtype=torch.float64)).tolist()
    ax.plot(
        [x],
        [y],
        "o",
        markerfacecolor="none",
        markeredgecolor=VERMILION,
        markeredgewidth=1.8,
        markersize=7,
        zorder=4,
        clip_on=False,
        label="projected probability",
    )
    for name, (left, bottom), place in zip(names, corners, ("below", "below", "above"), strict=True):
        offset, anchor = (0.035, "bottom") if place == "above" else (-0.035, "top")
        ax.text(left, bottom + offset, name, ha="center", va=anchor, fontsize=10, color=ink())
    set_title(ax, title)
    return ax


def _parameters(given: MultinomialOpinion | TensorLike) -> tuple[Tensor, Tensor]:
    """Dirichlet parameters and projected probability, in float64 on the CPU."""
    if isinstance(given, MultinomialOpinion):
        alpha, projected = given.alpha, given.projected
    else:
        alpha = as_float_tensor(given, "alpha")
        projected = alpha / alpha.sum(-1, keepdim=True)
    if alpha.shape != (3,):
        raise EvidentiaError(
            f"the simplex can be drawn for one opinion over 3 classes, got shape {tuple(alpha.shape)}; "
            "pick one of a batch, or three of the classes"
        )
    if not bool((alpha > 0).all()):
        raise EvidentiaError(f"every alpha must be above 0, got {alpha.tolist()}")
    return alpha.detach().cpu().double(), projected.detach().cpu().double()


def _draw_density(ax: Axes, alpha: Tensor, corners: tuple[tuple[float, float], ...]) -> None:
    require_matplotlib()
    from matplotlib.colors import LinearSegmentedColormap, to_rgb
    from matplotlib.patches import Polygon

    hue = to_rgb(blue())
    height = corners[2][1]
    rows = round(_COLUMNS * height)
    # The centre of each pixel, and its class probabilities: p_3 from the height, p_2 from what is left.
    x = (torch.arange(_COLUMNS, dtype=torch.float64) + 0.5) / _COLUMNS
    y = (torch.arange(rows, dtype=torch.float64) + 0.5) / rows
    top = y.unsqueeze(1).expand(rows, _COLUMNS)
    right = x - top / 2
    point = torch.stack([1 - right - top, right, top], -1)
    inside = (point > 0).all(-1)
    # Pixels outside continue the border, so that the clipped edge is clean.
    point = point.clamp(min=_BORDER if bool((alpha < 1).any()) else 0.25 / _COLUMNS)
    point = point / point.sum(-1, keepdim=True)

    log_density = ((alpha - 1) * point.log()).sum(-1)
    relative = (log_density - log_density[inside].max()).exp()
    # The mean over the triangle stands for 1 / (highest density / flat density).
    shade = relative / max(1.0, float(relative[inside].mean()) / _FLAT_SHADE)
    image = ax.imshow(
        shade.clamp(0, 1).numpy(),
        extent=(0.0, 1.0, 0.0, height),
        origin="lower",
        cmap=LinearSegmentedColormap.from_list("evidence", [(*hue, 0.0), (*hue, 1.0)]),
        vmin=0.0,
        vmax=1.0,
        interpolation="bilinear",
        zorder=1,
    )
    image.set_clip_path(Polygon(corners, closed=True, transform=ax.transData))
