"""Settings with defaults and limits, whose errors are sentences."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from inspect import Parameter, signature
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from evidentia._support.errors import EvidentiaError


class Settings(BaseModel):
    """A group of settings; an unknown name or a value out of its limits is an `EvidentiaError`.

    Example:
        >>> class Oven(Settings):
        ...     heat: float = 180.0
        >>> Oven(heat="high")
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: the settings do not fit: heat: Input should be a valid number, ... got
        'high'
        >>> Oven(hate=200)
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: the settings do not fit: hate: there is no such setting; choose
        one of: heat
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False)

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            problems = "; ".join(map(self._told, error.errors()))
            raise EvidentiaError(f"the settings do not fit: {problems}") from error

    @property
    def changed(self) -> list[str]:
        """The names of settings that differ from their defaults."""
        return [
            name
            for name, field in type(self).model_fields.items()
            if getattr(self, name) != field.get_default(call_default_factory=True)
        ]

    @classmethod
    def _told(cls, problem: ErrorDetails) -> str:
        name = ".".join(map(str, problem["loc"]))
        if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
            return f"{name}: there is no such setting; choose one of: {', '.join(cls.model_fields)}"
        return f"{name}: {problem['msg']}, got {reprlib.repr(problem['input'])}"


def refuse_unknown(given: Iterable[str], made: type, *groups: type[Settings]) -> None:
    """Refuse settings that neither what is made takes itself nor any of its groups has, with the names of all.

    Args:
        given: the names that were given.
        made: the class whose arguments they are, of which further ones go to the groups.
        groups: what takes these.

    Example:
        >>> class Oven(Settings):
        ...     heat: float = 180.0
        >>> class Cook:
        ...     def __init__(self, dish: str = "soup", **settings: float) -> None: ...
        >>> refuse_unknown(["hate"], Cook, Oven)
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: the settings do not fit: hate: there is no such setting; choose
        one of: dish, heat
    """
    own = [name for name, entry in signature(made).parameters.items() if entry.kind is not Parameter.VAR_KEYWORD]
    known = [*own, *(name for group in groups for name in group.model_fields)]
    if unknown := [name for name in given if name not in known]:
        raise EvidentiaError(
            f"the settings do not fit: {', '.join(unknown)}: there is no such setting; choose one of: "
            f"{', '.join(known)}"
        )
