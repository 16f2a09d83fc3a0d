"""PyTorch Geometric, imported only when a graph is made."""

from __future__ import annotations

from typing import Any

from evidentia._support.errors import MissingExtraError


def data_class() -> Any:
    """`torch_geometric.data.Data`."""
    try:
        from torch_geometric.data import Data
    except ImportError as error:
        raise MissingExtraError("torch-geometric", "graphs", "a graph") from error
    return Data
