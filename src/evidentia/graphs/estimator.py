"""A classifier for the nodes of a graph that knows which of them it gets wrong and which it has never seen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch
from torch import Tensor, nn
from typing_extensions import Self

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia._support.files import load_tensors, save_tensors
from evidentia.graphs.checks import check_graph
from evidentia.graphs.kernel_prior import kernel_prior
from evidentia.graphs.methods import GRAPH_METHODS, GraphMethod
from evidentia.graphs.models import BACKBONES, Backbone, GraphTensors, OwnBackbone
from evidentia.graphs.propagation import propagate_energy, propagate_evidence, propagate_strength
from evidentia.graphs.training import EDGE_DROPOUT, GraphTraining, train_network
from evidentia.learning.seeding import seeded
from evidentia.opinions import MultinomialOpinion, uncertainties
from evidentia.prediction import Prediction

if TYPE_CHECKING:
    from torch_geometric.data import Data

Propagation = Literal["none", "strength", "evidence", "gated"]

# Numbers that the widest layer of one batch of passes may hold at once.
_PASS_ENTRIES = 1 << 25

# Teacher and student start from different weights.
_TEACHER_SEED = 1_000_000

_KIND = "graph classifier"


class GraphClassifier:
    """Classifies the nodes of a graph from the labels of some, with opinions and uncertainties for all.

    Args:
        method: a name of `evidentia.graphs.GRAPH_METHODS`; "s-bgcn-t-k" is the thesis' full method.
        backbone: "gcn", "gat", "graphsage", "appnp", or a module of your own called as `module(x, edge_index)`.
        hidden: width of the hidden layer; by default the backbone's own.
        dropout: dropout rate; by default the backbone's own.
        sigma: bandwidth of the kernel prior, in hops.
        passes: how many passes a sampled prediction averages.
        propagation: spread evidence along edges when predicting: "strength" (labels stay), "evidence" (all of it),
            "gated" (all of it if that raises validation accuracy, else strength) or "none".
        checkpoint: a file from which a broken-off training goes on to the same end.
        settings: how to train; see `evidentia.graphs.GraphTraining`: epochs, patience, learning_rate, weight_decay,
            prior_weight (0.001 to find mistakes, 0.1 to find unknown nodes), seed, progress.

    Example:
        >>> from evidentia.graphs import GraphClassifier, citation_graph
        >>> data = citation_graph(nodes=300, classes=3, features=60)
        >>> pred = GraphClassifier("s-bgcn-t-k", epochs=50, progress=False).fit(data).predict()
        >>> bool((pred.labels == data.y)[data.test_mask].float().mean() > 0.6)
        True
        >>> list(pred.uncertainties)
        ['vacuity', 'dissonance', 'entropy', 'aleatoric', 'epistemic', 'differential_entropy']
    """

    def __init__(
        self,
        method: str = "s-bgcn-t-k",
        backbone: str | nn.Module = "gcn",
        *,
        hidden: int | None = None,
        dropout: float | None = None,
        sigma: float = 1.0,
        passes: int = 100,
        propagation: Propagation = "none",
        checkpoint: str | Path | None = None,
        **settings: Any,
    ) -> None:
        self.method_name = method
        self.method: GraphMethod = GRAPH_METHODS[method]
        if propagation not in get_args(Propagation):
            raise EvidentiaError(f"propagation must be one of {', '.join(get_args(Propagation))}, got {propagation!r}")
        if propagation != "none" and self.method.evidence is None:
            raise EvidentiaError(f"method {method!r} has no evidence to propagate; use propagation='none'")
        if passes < 1:
            raise EvidentiaError(f"passes must be at least 1, got {passes}")
        if isinstance(backbone, str):
            BACKBONES[backbone]
        self.backbone = backbone
        self.options = {name: value for name, value in (("hidden", hidden), ("dropout", dropout)) if value is not None}
        self.sigma, self.passes, self.propagation = sigma, passes, propagation
        self.checkpoint = None if checkpoint is None else Path(checkpoint)
        self.settings = GraphTraining(**settings)
        self.history: list[dict[str, float]] = []
        self._network: Backbone | None = None
        self._graph: GraphTensors | None = None
        self._spreads_classes = propagation == "evidence"

    def fit(self, data: Data, num_classes: int | None = None) -> Self:
        """Train on the nodes of `data.train_mask`, watching those of `data.val_mask`.

        Args:
            data: a PyG `Data` with `x` (dense or sparse), `edge_index`, `y` (-1 where unknown) and the two masks.
            num_classes: K; by default `data.num_classes`, or one more than the largest label.
        """
        classes = getattr(data, "num_classes", int(data.y.max()) + 1) if num_classes is None else num_classes
        check_graph(data, classes)
        graph = GraphTensors.build(data.x, data.edge_index)
        prior = None
        if self.method.prior:
            prior = kernel_prior(data.edge_index, data.y, data.train_mask, classes, self.sigma)
        teacher = self._teach(graph, data, classes) if self.method.teacher else None
        network = self._build(graph.num_features, classes, self.settings.seed)
        self.history = train_network(
            network,
            self.method,
            graph,
            data,
            self.settings,
            prior=prior,
            teacher=teacher,
            checkpoint=self.checkpoint,
            fingerprint=self._fingerprint(self.method_name, graph, classes),
        )
        self._network, self._graph, self.num_classes = network, graph, classes
        if self.propagation == "gated":
            self._spreads_classes = self._gate(graph, data)
        return self

    @torch.no_grad()
    def predict(self, data: Data | None = None) -> Prediction:
        """Predict every node of the graph that was trained on, or of another one with the same features.

        On another graph, or the same one with nodes added, the trained weights are used as they are: a new node gets
        its evidence from its own features and from its neighbours, and no label of the other graph is looked at.
        """
        network, own = self._trained()
        graph = own if data is None else GraphTensors.build(data.x, data.edge_index)
        if graph is None:
            raise EvidentiaError("a loaded classifier has no graph of its own; give predict(data)")
        logits = self._sample(network, graph)
        sampled = self.method.probs(logits)
        measured = uncertainties(sampled) if self.method.sampling != "none" else None
        if self.method.energy:
            measured = {"energy": propagate_energy(logits.mean(0), graph.walk)}
        if self.method.evidence is None:
            return Prediction(sampled.mean(0), uncertainties=measured)
        opinion = MultinomialOpinion.from_alpha(
            self.method.alpha(self._propagate(logits.mean(0), graph)), validate=False
        )
        return Prediction(opinion.projected if self._spreads_classes else sampled.mean(0), opinion, measured)

    @torch.no_grad()
    def embed(self) -> Tensor:
        """The first hidden layer of every node, shape `(N, hidden)`, for pictures."""
        network, graph = self._trained()
        if graph is None:
            raise EvidentiaError("a loaded classifier has no graph of its own to embed")
        return network.eval().hidden(graph)[0]

    def save(self, path: str | Path) -> None:
        """Save weights and settings to one file, whole or not at all. The code of a module of your own is not in it."""
        network, _ = self._trained()
        content = {
            "method": self.method_name,
            "backbone": self.backbone if isinstance(self.backbone, str) else None,
            "options": self.options,
            "sigma": self.sigma,
            "passes": self.passes,
            "propagation": self.propagation,
            "spreads_classes": self._spreads_classes,
            "settings": self.settings.model_dump(mode="json"),
            "num_features": self._num_features,
            "num_classes": self.num_classes,
        }
        save_tensors(path, _KIND, network.state_dict(), content)

    @classmethod
    def load(cls, path: str | Path, backbone: nn.Module | None = None) -> Self:
        """Load what `save` wrote; nothing in the file can run code.

        Args:
            path: the file.
            backbone: your own module, of the same shape, if the classifier was built with one.
        """
        tensors, content = load_tensors(path, _KIND)
        chosen = content.get("backbone") if backbone is None else backbone
        if chosen is None or (backbone is not None and content.get("backbone") is not None):
            needed = "the module it was built with" if backbone is None else "no module"
            raise EvidentiaError(f"{path} needs {needed} as backbone")
        try:
            model = cls(
                content["method"],
                chosen,
                sigma=content["sigma"],
                passes=content["passes"],
                propagation=content["propagation"],
                **content["options"],
                **content["settings"],
            )
            network = model._build(content["num_features"], content["num_classes"], seed=0)
            network.load_state_dict(tensors)
        except (KeyError, TypeError, RuntimeError) as error:
            raise FileFormatError(f"{path} does not hold a whole graph classifier: {error}") from error
        model._network, model.num_classes = network.eval(), content["num_classes"]
        model._spreads_classes = content["spreads_classes"]
        return model

    def _trained(self) -> tuple[Backbone, GraphTensors | None]:
        if self._network is None:
            raise EvidentiaError("the classifier is not trained yet; call fit first")
        return self._network, self._graph

    def _build(self, features: int, classes: int, seed: int) -> Backbone:
        self._num_features = features
        if isinstance(self.backbone, nn.Module):
            return OwnBackbone(self.backbone)
        with seeded(seed, -1):
            return BACKBONES[self.backbone](features, classes, **self.options)

    def _teach(self, graph: GraphTensors, data: Data, classes: int) -> Tensor:
        """Class probabilities of a plain network trained before."""
        if isinstance(self.backbone, nn.Module):
            network: Backbone = BACKBONES["gcn"](graph.num_features, classes)
        else:
            network = self._build(graph.num_features, classes, self.settings.seed + _TEACHER_SEED)
        path = self.checkpoint
        train_network(
            network,
            GRAPH_METHODS["gcn"],
            graph,
            data,
            self.settings,
            checkpoint=None if path is None else path.with_name(f"{path.stem}.teacher{path.suffix}"),
            fingerprint=self._fingerprint("gcn", graph, classes),
        )
        with torch.no_grad():
            probs: Tensor = network(graph)[0].softmax(-1)
        return probs

    def _fingerprint(self, method: str, graph: GraphTensors, classes: int) -> dict[str, Any]:
        return {
            "method": method,
            "backbone": self.backbone if isinstance(self.backbone, str) else type(self.backbone).__name__,
            "options": self.options,
            "sigma": self.sigma,
            "graph": [graph.num_nodes, graph.num_features, graph.edge_index.shape[1], classes],
            **self.settings.model_dump(mode="json", exclude={"progress"}),
        }

    def _sample(self, network: Backbone, graph: GraphTensors) -> Tensor:
        """Logits of shape `(passes, N, K)`; a single pass without dropout if the method does not sample."""
        if self.method.sampling == "none":
            logits: Tensor = network.eval()(graph)
            return logits
        widest = max(parameter.shape[-1] for parameter in network.parameters())
        entries = max(graph.num_nodes * widest, getattr(graph.features, "num_values", 0))
        drops_edges = self.method.sampling == "dropedge"
        at_once = 1 if drops_edges else max(1, min(self.passes, _PASS_ENTRIES // entries))
        parts = []
        network.train()
        with seeded(self.settings.seed, self.settings.epochs, graph.edge_index.device):
            for start in range(0, self.passes, at_once):
                shown = graph.without_edges(EDGE_DROPOUT) if drops_edges else graph
                parts.append(network(shown, passes=min(at_once, self.passes - start)))
        network.eval()
        return torch.cat(parts)

    def _propagate(self, logits: Tensor, graph: GraphTensors) -> Tensor:
        if self.propagation == "none":
            return logits
        spread = propagate_evidence if self._spreads_classes else propagate_strength
        return spread(logits, graph.walk)

    @torch.no_grad()
    def _gate(self, graph: GraphTensors, data: Data) -> bool:
        """Whether spreading all evidence raises the accuracy on the validation nodes."""
        network, _ = self._trained()
        logits = self._sample(network, graph).mean(0)
        before, after = (
            int((values.argmax(-1) == data.y)[data.val_mask].sum())
            for values in (logits, propagate_evidence(logits, graph.walk))
        )
        return after > before
