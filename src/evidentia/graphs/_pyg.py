"""PyTorch Geometric, imported only when a graph is made."""

from __future__ import annotations

from typing import Any

from evidentia._support.extras import from_extra


def data_class() -> Any:
    """`torch_geometric.data.Data`."""
    with from_extra("torch-geometric", "graphs", "a graph"):
        from torch_geometric.data import Data
    return Data
