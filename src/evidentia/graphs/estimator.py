"""A classifier for the nodes of a graph that knows which of them it gets wrong and which it has never seen."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import torch
from torch import Tensor, nn
from typing_extensions import Self

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia._support.files import load_tensors, save_tensors
from evidentia.graphs.checks import check_graph
from evidentia.graphs.fitting import Fitting, Role
from evidentia.graphs.methods import GRAPH_METHODS, GraphMethod, Propagation
from evidentia.graphs.models import BACKBONES, Backbone, GraphTensors, OwnBackbone
from evidentia.graphs.propagation import propagate_energy, propagate_evidence, propagate_strength
from evidentia.graphs.training import EDGE_DROPOUT, GraphTraining, Spread
from evidentia.learning.seeding import seeded
from evidentia.opinions import MultinomialOpinion, uncertainties
from evidentia.prediction import Prediction

if TYPE_CHECKING:
    from torch_geometric.data import Data

# Numbers that the widest layer of one batch of passes may hold at once.
_PASS_ENTRIES = 1 << 25

_KIND = "graph classifier"

_SPREADS: dict[str, Spread] = {"strength": propagate_strength, "evidence": propagate_evidence}


class GraphClassifier:
    """Classifies the nodes of a graph from the labels of some, with opinions and uncertainties for all.

    Args:
        method: a name of `evidentia.graphs.GRAPH_METHODS`; "s-bgcn-t-k" is the thesis' full method, "s-bgcn-t-kw" ours
            for finding nodes of unknown classes.
        backbone: "gcn", "mean-gcn", "gat", "graphsage", "appnp", or a module of your own called as
            `module(x, edge_index)`; by default the one that the method is meant for.
        hidden: width of the hidden layer; by default the backbone's own.
        dropout: dropout rate; by default the backbone's own.
        sigma: bandwidth of the kernel prior, in hops.
        passes: how many passes a sampled prediction averages.
        members: how many networks to train and to average, each from other weights.
        propagation: spread evidence along edges when predicting: "strength" (labels stay), "evidence" (all of it),
            "gated" (all of it if that raises validation accuracy, else strength) or "none"; by default the method's.
            It assumes that neighbours tend to be alike.
        checkpoint: a file from which a broken-off training goes on to the same end.
        cache: a folder in which trained teachers are kept, for methods and runs that need the same one.
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
        backbone: str | nn.Module | None = None,
        *,
        hidden: int | None = None,
        dropout: float | None = None,
        sigma: float = 1.0,
        passes: int = 100,
        members: int = 1,
        propagation: Propagation | None = None,
        checkpoint: str | Path | None = None,
        cache: str | Path | None = None,
        **settings: Any,
    ) -> None:
        self.method_name = method
        self.method: GraphMethod = GRAPH_METHODS[method]
        propagation = self.method.propagation if propagation is None else propagation
        if propagation not in get_args(Propagation):
            raise EvidentiaError(f"propagation must be one of {', '.join(get_args(Propagation))}, got {propagation!r}")
        if propagation != "none" and self.method.evidence is None:
            raise EvidentiaError(f"method {method!r} has no evidence to propagate; use propagation='none'")
        for name, value in (("passes", passes), ("members", members)):
            if value < 1:
                raise EvidentiaError(f"{name} must be at least 1, got {value}")
        self.backbone = self.method.backbone if backbone is None else backbone
        if isinstance(self.backbone, str):
            BACKBONES[self.backbone]
        self.options = {name: value for name, value in (("hidden", hidden), ("dropout", dropout)) if value is not None}
        self.sigma, self.passes, self.members, self.propagation = sigma, passes, members, propagation
        self.checkpoint = None if checkpoint is None else Path(checkpoint)
        self.cache = None if cache is None else Path(cache)
        self.settings = GraphTraining(**settings)
        if self.settings.propagated and propagation not in _SPREADS:
            raise EvidentiaError(f"propagated training needs propagation {' or '.join(_SPREADS)}, got {propagation!r}")
        self.history: list[dict[str, float]] = []
        self._networks = nn.ModuleDict()
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
        fitting = Fitting(
            self.method,
            graph,
            data,
            classes,
            self.settings,
            self.sigma,
            build=lambda seed: self._build(graph.num_features, classes, seed),
            build_teacher=lambda seed: self._build(graph.num_features, classes, seed, teacher=True),
            spread=_SPREADS[self.propagation] if self.settings.propagated else None,
            checkpoint=self.checkpoint,
            cache=self.cache,
            content=self._content(classes),
        )
        trained = [fitting.train("classes", member) for member in range(self.members)]
        self.history = [epoch for _, history in trained for epoch in history]
        networks = nn.ModuleDict({"classes": nn.ModuleList(network for network, _ in trained)})
        if self.method.strength_prior is not None:
            networks["strength"] = nn.ModuleList(fitting.train("strength", index)[0] for index in range(self.members))
        self._networks, self._graph = networks.eval(), graph
        self._num_features, self.num_classes = graph.num_features, classes
        if self.propagation == "gated":
            self._spreads_classes = self._gate(graph, data)
        return self

    @torch.no_grad()
    def predict(self, data: Data | None = None) -> Prediction:
        """Predict every node of the graph that was trained on, or of another one with the same features.

        On another graph, or the same one with nodes added, the trained weights are used as they are: a new node gets
        its evidence from its own features and from its neighbours, and no label of the other graph is looked at.
        """
        own = self._trained()
        graph = own if data is None else GraphTensors.build(data.x, data.edge_index)
        if graph is None:
            raise EvidentiaError("a loaded classifier has no graph of its own; give predict(data)")
        logits = self._sample("classes", graph)
        sampled = self.method.probs(logits)
        measured = uncertainties(sampled) if len(sampled) > 1 else None
        if self.method.energy:
            measured = {**(measured or {}), "energy": propagate_energy(logits.mean(0), graph.walk)}
        if self.method.evidence is None:
            return Prediction(sampled.mean(0), uncertainties=measured)
        opinion = MultinomialOpinion.from_alpha(self.method.alpha(self._evidence(logits, graph)), validate=False)
        return Prediction(opinion.projected if self._spreads_classes else sampled.mean(0), opinion, measured)

    @torch.no_grad()
    def embed(self) -> Tensor:
        """The first hidden layer of every node, shape `(N, hidden)`; of an ensemble, that of its first member."""
        graph = self._trained()
        if graph is None:
            raise EvidentiaError("a loaded classifier has no graph of its own to embed")
        return self._members("classes")[0].hidden(graph)[0]

    def save(self, path: str | Path) -> None:
        """Save weights and settings to one file, whole or not at all. The code of a module of your own is not in it."""
        self._trained()
        content = {
            "method": self.method_name,
            "backbone": self.backbone if isinstance(self.backbone, str) else None,
            "options": self.options,
            "sigma": self.sigma,
            "passes": self.passes,
            "members": self.members,
            "propagation": self.propagation,
            "spreads_classes": self._spreads_classes,
            "settings": self.settings.model_dump(mode="json"),
            "num_features": self._num_features,
            "num_classes": self.num_classes,
        }
        save_tensors(path, _KIND, self._networks.state_dict(), content)

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
                members=content["members"],
                propagation=content["propagation"],
                **content["options"],
                **content["settings"],
            )
            model._num_features, model.num_classes = content["num_features"], content["num_classes"]
            roles = ["classes"] + ["strength"] * (model.method.strength_prior is not None)
            for role in roles:
                built = (model._build(model._num_features, model.num_classes, seed=0) for _ in range(model.members))
                model._networks[role] = nn.ModuleList(built)
            model._networks.load_state_dict(tensors)
        except (KeyError, TypeError, RuntimeError) as error:
            raise FileFormatError(f"{path} does not hold a whole graph classifier: {error}") from error
        model._networks.eval()
        model._spreads_classes = content["spreads_classes"]
        return model

    def _trained(self) -> GraphTensors | None:
        """The graph that the classifier was trained on, if it has one."""
        if not self._networks:
            raise EvidentiaError("the classifier is not trained yet; call fit first")
        return self._graph

    def _members(self, role: Role) -> list[Backbone]:
        return cast("list[Backbone]", list(cast(nn.ModuleList, self._networks[role])))

    def _build(self, features: int, classes: int, seed: int, *, teacher: bool = False) -> Backbone:
        if isinstance(self.backbone, nn.Module) and not teacher:
            # A copy for each network; the user's module itself stays untrained.
            network = OwnBackbone(copy.deepcopy(self.backbone))
            if seed != self.settings.seed:
                # The first starts from the user's weights; others that did so too would be the same network again.
                with seeded(seed, -1):
                    network.apply(_start_anew)
            return network
        name = self.backbone if isinstance(self.backbone, str) else "gcn"
        with seeded(seed, -1):
            return BACKBONES[name](features, classes, **self.options)

    def _content(self, classes: int) -> dict[str, Any]:
        """What the networks are, for checkpoints to be known by."""
        name = self.backbone if isinstance(self.backbone, str) else type(self.backbone).__name__
        return {"backbone": name, "options": self.options, "classes": classes}

    def _evidence(self, logits: Tensor, graph: GraphTensors) -> Tensor:
        """Log evidence of every node, shape `(N, K)`: for what, how much, and what neighbours add to it."""
        mean = logits.mean(0)
        if "strength" in self._networks:
            own = mean.logsumexp(-1, keepdim=True)
            other = self._sample("strength", graph).mean(0).logsumexp(-1, keepdim=True)
            # The geometric mean of what both networks say there is: where one is misled, the other seldom is.
            mean = mean + (other - own) / 2
        if self.propagation == "none":
            return mean
        return _SPREADS["evidence" if self._spreads_classes else "strength"](mean, graph.walk)

    def _sample(self, role: Role, graph: GraphTensors) -> Tensor:
        """Logits of shape `(members * passes, N, K)`; single passes without dropout if the method does not sample."""
        return torch.cat([self._sample_network(network, graph) for network in self._members(role)])

    def _sample_network(self, network: Backbone, graph: GraphTensors) -> Tensor:
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

    @torch.no_grad()
    def _gate(self, graph: GraphTensors, data: Data) -> bool:
        """Whether spreading all evidence raises the accuracy on the validation nodes."""
        logits = self._sample("classes", graph).mean(0)
        before, after = (
            int((values.argmax(-1) == data.y)[data.val_mask].sum())
            for values in (logits, propagate_evidence(logits, graph.walk))
        )
        return after > before


def _start_anew(layer: nn.Module) -> None:
    reset = getattr(layer, "reset_parameters", None)
    if callable(reset):
        reset()
