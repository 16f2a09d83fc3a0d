"""The errors that evidentia raises on purpose."""

from __future__ import annotations


class EvidentiaError(ValueError):
    """Something given to evidentia cannot be used; the message says what, what is needed and what to do."""


class NotTrainedError(EvidentiaError, AttributeError):
    """What training learns was asked for before training; an AttributeError too, so that `hasattr` says no."""


class FileFormatError(EvidentiaError):
    """A file is truncated, tampered with, or of a kind or version that this release does not read."""


class MissingExtraError(ImportError):
    """A part of evidentia needs a package that is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}, which is not installed; run: pip install 'evidentia[{extra}]'")
