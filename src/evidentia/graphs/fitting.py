"""All networks that a classifier is made of: teacher, members of an ensemble, those for classes and for strength."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import torch
from torch import Tensor

from evidentia.graphs.graph_tensors import GraphTensors
from evidentia.graphs.kernel_prior import kernel_prior
from evidentia.graphs.methods import GRAPH_METHODS, GraphMethod
from evidentia.graphs.models import Backbone
from evidentia.graphs.sparse_matrix import SparseMatrix
from evidentia.graphs.training import GraphTraining, Spread, train_network
from evidentia.graphs.walk_prior import walk_prior
from evidentia.learning.checkpoint import digest

if TYPE_CHECKING:
    from torch_geometric.data import Data

Role: TypeAlias = Literal["classes", "strength"]

# The seeds of networks that are trained for one classifier lie so far apart.
_TEACHER_SEED, _STRENGTH_SEED, _MEMBER_SEED = 1_000_000, 2_000_000, 10_000_000


@dataclass
class Fitting:
    """Trains networks on one graph.

    Attributes:
        method: what is trained.
        graph: the graph as networks want it.
        data: the same with labels and masks.
        num_classes: K.
        settings: how to train.
        sigma: bandwidth of the kernel prior.
        build: makes an untrained network from a seed.
        build_teacher: likewise, the teacher.
        spread: what spreads outputs along edges in training.
        checkpoint: the file from which a broken-off run goes on; the files of further networks stand beside it.
        cache: a folder in which trained teachers are kept and found again.
        content: what the networks are, for checkpoints to be known by.
    """

    method: GraphMethod
    graph: GraphTensors
    data: Data
    num_classes: int
    settings: GraphTraining
    sigma: float
    build: Callable[[int], Backbone]
    build_teacher: Callable[[int], Backbone]
    spread: Spread | None
    checkpoint: Path | None
    cache: Path | None
    content: dict[str, Any]
    _priors: dict[str, Tensor] = field(default_factory=dict)
    _teacher: Tensor | None = None

    def train(self, role: Role, member: int) -> tuple[Backbone, list[dict[str, float]]]:
        """Train a member of the ensemble, and give it back with what was measured in each epoch."""
        seed = self.settings.seed + member * _MEMBER_SEED
        settings, kind = self.settings, self.method.prior
        if role == "strength":
            seed, kind = seed + _STRENGTH_SEED, self.method.strength_prior
            settings = settings.model_copy(update={"prior_weight": settings.strength_weight})
        network = self.build(seed).to(self.graph.edge_index.device)
        history = train_network(
            network,
            self.method,
            self.graph,
            self.data,
            settings.model_copy(update={"seed": seed}),
            prior=None if kind is None else self._prior(kind),
            teacher=self._taught() if self.method.teacher else None,
            spread=self.spread,
            checkpoint=self._beside("" if (role, member) == ("classes", 0) else f".{role}{member}"),
            fingerprint={
                **self._fingerprint(self.settings),
                "method": asdict(self.method),
                "sigma": self.sigma,
                "role": role,
                "member": member,
            },
        )
        return network, history

    def _prior(self, kind: str) -> Tensor:
        if kind not in self._priors:
            known = (self.data.edge_index, self.data.y, self.data.train_mask, self.num_classes)
            self._priors[kind] = walk_prior(*known) if kind == "walk" else kernel_prior(*known, self.sigma)
        return self._priors[kind]

    def _taught(self) -> Tensor:
        """Class probabilities of a plain network, trained once for all members."""
        if self._teacher is None:
            network = self.build_teacher(self.settings.seed + _TEACHER_SEED).to(self.graph.edge_index.device)
            # A teacher does not depend on what it is needed for, and is found by all methods.
            unused = {"prior_weight": 0.0, "strength_weight": 0.0, "propagated": False}
            settings = self.settings.model_copy(update=unused)
            fingerprint = {**self._fingerprint(settings), "role": "teacher"}
            path = self._beside(".teacher")
            if self.cache is not None:
                key = hashlib.sha256(json.dumps(fingerprint, sort_keys=True).encode()).hexdigest()[:20]
                self.cache.mkdir(parents=True, exist_ok=True)
                path = self.cache / f"teacher-{key}.safetensors"
            train_network(
                network,
                GRAPH_METHODS["gcn"],
                self.graph,
                self.data,
                settings,
                checkpoint=path,
                fingerprint=fingerprint,
                watch=False,
            )
            with torch.no_grad():
                self._teacher = network(self.graph)[0].softmax(-1)
        return self._teacher

    def _beside(self, suffix: str) -> Path | None:
        path = self.checkpoint
        return None if path is None else path.with_name(f"{path.stem}{suffix}{path.suffix}")

    def _fingerprint(self, settings: GraphTraining) -> dict[str, Any]:
        return {
            **self.content,
            **settings.model_dump(mode="json", exclude={"progress"}),
            "graph": _digest(self.graph, self.data),
        }


def _digest(graph: GraphTensors, data: Data) -> str:
    """A hash of everything in a graph that training looks at."""
    features = graph.features
    tensors = [features.crow, features.col, features.values] if isinstance(features, SparseMatrix) else [features]
    tensors += [graph.edge_index, data.y, data.train_mask, data.val_mask]
    return digest(tensors)
