"""The pictures of networks that studies know by the names of their jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from evidentia._support.registry import Registry
from evidentia.reports.report import Drawing

T = TypeVar("T")


class Group(NamedTuple):
    """Pictures that stand together in a report."""

    heading: str
    text: str
    """What they show; nothing if the captions say it all."""
    drawings: Sequence[Drawing]
    small: bool = False
    """Whether many of them have room beside each other."""


class NetworkPictures(ABC, Generic[T]):
    """How the networks of a job are trained and drawn."""

    @abstractmethod
    def train(self, configuration: Mapping[str, Any], seed: int) -> T:
        """Train the network of a cell, and do whatever else takes long.

        Args:
            configuration: that of the job; if the user named a folder of data sets, with it as `data_root`.
            seed: of data and training.
        """

    @abstractmethod
    def groups(self, trained: Mapping[str, T]) -> list[Group]:
        """What is drawn of the networks.

        Args:
            trained: what `train` gave, by the words for its cell; at least one.
        """


PICTURES: Registry[type[NetworkPictures[Any]]] = Registry("job with pictures")
