"""What an estimator learns: attributes that are there once it is trained, and before say what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from evidentia._support.errors import NotTrainedError


class LearntAttributes:
    """Base of the estimators, which set what they learn in `fit` and in `load`, and nowhere else.

    Attributes:
        learnt: the names of all attributes that are learnt.

    Example:
        >>> class Mean(LearntAttributes):
        ...     learnt = ("mean_",)
        >>> hasattr(Mean(), "mean_")
        False
        >>> Mean().mean_
        Traceback (most recent call last):
        evidentia._support.errors.NotTrainedError: this Mean is not trained yet and has no mean_; call fit first
    """

    learnt: ClassVar[tuple[str, ...]] = ()

    if not TYPE_CHECKING:
        # Hidden from type checkers, which would take any attribute for one that exists.
        def __getattr__(self, name: str) -> Any:
            """Called for what is not there."""
            kind = type(self).__name__
            if name in type(self).learnt:
                raise NotTrainedError(f"this {kind} is not trained yet and has no {name}; call fit first")
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")
