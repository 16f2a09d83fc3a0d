"""Which published accuracy a run on a dirty pool is to stand beside."""

from __future__ import annotations

from evidentia.experiments.published_figures import PublishedFigure, published_figure

_MOONS, _SVHN, _CIFAR100 = "semisup-moons", "semisup-svhn", "semisup-cifar100"
# Two moons are drawn and tabled for VAT ("we mainly focus on VAT").
_MOONS_OBJECTIVE = "vat"
_THESIS = ("meta", "ift")


def published_accuracy(
    data: str,
    objective: str,
    robust: str,
    ood: str | None,
    ratio: float | None,
    norm: str = "batch",
    passes: str | None = None,
) -> PublishedFigure | None:
    """The thesis' accuracy, in %, for the same data, OOD, objective and method, or None if it has none.

    Its "SSL-BN" stands beside separate passes, in which running statistics are those of the pool: only these collapse
    as it says. Where it does not tell its two methods apart ("ours"), the figure stands beside both, for batch norm
    that is weighted.

    Example:
        >>> published_accuracy("two-moons", "vat", "none", "faraway", 0.5, "batch", "separate").value
        50.0
        >>> published_accuracy("two-moons", "vat", "none", "faraway", 0.5, "batch", "concat") is None
        True
        >>> published_accuracy("svhn", "vat", "ift", "held-out", 0.25, "weighted").value
        96.8
    """
    if ood is None or ratio is None:
        return None
    column = f"accuracy.{100 * ratio:g}"
    if data == "two-moons" and objective == _MOONS_OBJECTIVE:
        row = _moons_row(robust, norm, passes)
        return None if row is None else published_figure(_MOONS, f"{ood}/{row}", column)
    if data in ("svhn", "svhn-extra", "cifar100"):
        if norm != ("weighted" if robust in _THESIS else "batch"):
            return None
        name = "ours-crw" if robust in _THESIS else robust
        return published_figure(_CIFAR100 if data == "cifar100" else _SVHN, f"{objective}/{name}", column)
    return None


def _moons_row(robust: str, norm: str, passes: str | None) -> str | None:
    if robust == "none":
        return f"none/{norm}" if norm != "batch" or passes == "separate" else None
    return robust if robust == "supervised" or (robust in _THESIS and norm == "weighted") else None
