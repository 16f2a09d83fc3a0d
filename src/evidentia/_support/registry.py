"""Registries: methods found by name, each registered on one line where it is defined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar, cast

from evidentia._support.errors import EvidentiaError

T = TypeVar("T")
Entry = TypeVar("Entry")


class Registry(Mapping[str, T], Generic[T]):
    """A read-only mapping of names to entries; `register` is a decorator that adds one.

    Example:
        >>> colours = Registry("colour")
        >>> @colours.register("red")
        ... def red() -> str:
        ...     return "#f00"
        >>> colours["red"]()
        '#f00'
        >>> colours["rde"]
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: there is no colour named 'rde'; choose one of: red
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[Entry], Entry]:
        """Return a decorator that registers what it decorates under `name`."""

        def decorate(entry: Entry) -> Entry:
            if name in self._entries:
                raise EvidentiaError(f"a {self.kind} named {name!r} is registered already; choose another name")
            self._entries[name] = cast("T", entry)
            return entry

        return decorate

    def __getitem__(self, name: str) -> T:
        try:
            return self._entries[name]
        except (KeyError, TypeError):
            known = ", ".join(sorted(self._entries))
            raise EvidentiaError(f"there is no {self.kind} named {name!r}; choose one of: {known}") from None

    def get(self, name: str, default: Any = None) -> Any:
        """The entry of that name, or `default` if there is none."""
        # Mapping.get waits for a KeyError, which __getitem__ does not raise.
        return self._entries.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
