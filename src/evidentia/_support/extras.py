"""Packages that come with an extra, and are imported only where they are used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from evidentia._support.errors import MissingExtraError


@contextmanager
def from_extra(package: str, extra: str, purpose: str) -> Iterator[None]:
    """Inside, say of a package that cannot be imported what needs it, and which extra it comes with.

    Example:
        >>> with from_extra("tomfoolery", "demo", "a joke"):
        ...     import tomfoolery
        Traceback (most recent call last):
        evidentia._support.errors.MissingExtraError: a joke needs tomfoolery, which is not installed; run: ...
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(package, extra, purpose) from error
