"""How figures over seeds are written in tables."""

from __future__ import annotations


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
