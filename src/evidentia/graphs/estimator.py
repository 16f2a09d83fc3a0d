"""A classifier for the nodes of a graph that knows which of them it gets wrong and which it has never seen."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import torch
from torch import Tensor, nn
from typing_extensions import Self

from evidentia._support.errors import EvidentiaError, NotTrainedError
from evidentia._support.files import check_writable
from evidentia._support.learnt import LearntAttributes
from evidentia._support.scalars import real_number, whole_number
from evidentia._support.settings import refuse_unknown
from evidentia.graphs import classifier_file
from evidentia.graphs.checks import check_graph, check_nodes, count_classes, stored_values
from evidentia.graphs.fitting import Fitting, Role
from evidentia.graphs.graph_tensors import GraphTensors
from evidentia.graphs.methods import GRAPH_METHODS, GraphMethod, Propagation
from evidentia.graphs.models import BACKBONES, Backbone, OwnBackbone, check_own_module
from evidentia.graphs.passes import Passes, run_passes
from evidentia.graphs.propagation import propagate_energy, propagate_evidence, propagate_strength
from evidentia.graphs.training import GraphTraining, Spread
from evidentia.learning.checkpoint import module_digest
from evidentia.learning.seeding import seeded
from evidentia.opinions import MultinomialOpinion
from evidentia.prediction import Prediction

if TYPE_CHECKING:
    from torch_geometric.data import Data

_SPREADS: dict[str, Spread] = {"strength": propagate_strength, "evidence": propagate_evidence}


class GraphClassifier(LearntAttributes):
    """Classifies the nodes of a graph from the labels of some, with opinions and uncertainties for all.

    Args:
        method: a name of `evidentia.graphs.GRAPH_METHODS`; "s-bgcn-t-k" is the thesis' full method, "s-bgcn-t-kw" ours
            for finding nodes of unknown classes.
        backbone: "gcn", "mean-gcn", "gat", "graphsage", "appnp", or a module of your own called as
            `module(x, edge_index)`; by default the one that the method is meant for.
        normalise: divide the features of each node by their sum, as bags of words are; by default where no feature is
            below 0. Others, such as embeddings, are taken as they are.
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

    Attributes:
        num_classes: K.
        history: what was measured in each epoch, of one member after the other; nothing if the classifier was loaded.

    Example:
        >>> from evidentia.graphs import GraphClassifier, citation_graph
        >>> data = citation_graph(nodes=300, classes=3, features=60)
        >>> pred = GraphClassifier("s-bgcn-t-k", epochs=50, progress=False).fit(data).predict()
        >>> bool((pred.labels == data.y)[data.test_mask].float().mean() > 0.6)
        True
        >>> list(pred.uncertainties)
        ['vacuity', 'dissonance', 'entropy', 'aleatoric', 'epistemic', 'differential_entropy']
    """

    learnt = ("num_classes", "history")

    def __init__(
        self,
        method: str = "s-bgcn-t-k",
        backbone: str | nn.Module | None = None,
        *,
        normalise: bool | None = None,
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
        refuse_unknown(settings, GraphClassifier, GraphTraining)
        self.method_name = method
        self.method: GraphMethod = GRAPH_METHODS[method]
        propagation = self.method.propagation if propagation is None else propagation
        if propagation not in get_args(Propagation):
            raise EvidentiaError(f"propagation must be one of {', '.join(get_args(Propagation))}, got {propagation!r}")
        if propagation != "none" and self.method.evidence in (None, "relu"):
            raise EvidentiaError(
                f"method {method!r} has no logarithms of evidence to propagate; use propagation='none', or a method "
                "whose evidence is an exponential"
            )
        self.backbone = self.method.backbone if backbone is None else backbone
        if isinstance(self.backbone, str):
            BACKBONES[self.backbone]
        else:
            check_own_module(self.backbone)
        # Numbers as Python has them, for files hold no others.
        self.options: dict[str, float] = {}
        if hidden is not None:
            self.options["hidden"] = whole_number(hidden, "hidden", 1)
        if dropout is not None:
            self.options["dropout"] = real_number(dropout, "dropout", 0, 1, open_high=True)
        self.normalise = normalise
        self.sigma = real_number(sigma, "sigma", 0, open_low=True)
        self.passes, self.members = whole_number(passes, "passes", 1), whole_number(members, "members", 1)
        self.propagation = propagation
        self.checkpoint = None if checkpoint is None else Path(checkpoint)
        if self.checkpoint is not None:
            check_writable(self.checkpoint)
        self.cache = None if cache is None else Path(cache)
        self.settings = GraphTraining(**settings)
        if self.settings.propagated and propagation not in _SPREADS:
            raise EvidentiaError(f"propagated training needs propagation {' or '.join(_SPREADS)}, got {propagation!r}")
        self.num_classes: int
        self.history: list[dict[str, float]]
        self._networks = nn.ModuleDict()
        self._graph: GraphTensors | None = None
        self._spreads_classes, self._normalises = propagation == "evidence", True

    def fit(self, data: Data, num_classes: int | None = None) -> Self:
        """Train on the nodes of `data.train_mask`, watching those of `data.val_mask`.

        Args:
            data: a PyG `Data` with `x` (dense or sparse), `edge_index` (both directions of an edge that has none, see
                `torch_geometric.utils.to_undirected`), `y` (-1 where unknown) and the two masks. Weights of edges are
                not looked at.
            num_classes: K; by default `data.num_classes`, or one more than the largest label.
        """
        classes = count_classes(data, num_classes)
        check_graph(data, classes)
        if getattr(data, "edge_weight", None) is not None:
            warnings.warn("data.edge_weight is not looked at: all edges count alike", stacklevel=2)
        self._normalises = self._choose_normalisation(data.x)
        graph = GraphTensors.build(data.x, data.edge_index, normalise=self._normalises)
        data = copy.copy(data)
        data.y = data.y.long()
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
        its evidence from its own features and from its neighbours, and no label of the other graph is looked at. What
        dropout drops depends on the size of a graph, so a node added far away moves the sampled figures of all others
        by the noise of that many passes.
        """
        graph = self._shown(data)
        passes = self._passes("classes", graph)
        measured = passes.uncertainties()
        if self.method.energy:
            measured = {**(measured or {}), "energy": propagate_energy(passes.logits, graph.walk)}
        if self.method.evidence is None:
            return Prediction(passes.probs, uncertainties=measured)
        alpha = self.method.alpha(self._evidence(passes.logits, graph))
        opinion = MultinomialOpinion.from_alpha(alpha, validate=False)
        return Prediction(opinion.projected if self._spreads_classes else passes.probs, opinion, measured)

    @torch.no_grad()
    def embed(self, data: Data | None = None) -> Tensor:
        """The first hidden layer of every node, shape `(N, hidden)`; of an ensemble, that of its first member.

        Args:
            data: another graph, as for `predict`.
        """
        return self._members("classes")[0].hidden(self._shown(data))[0]

    def save(self, path: str | Path) -> None:
        """Save weights and settings to one file, whole or not at all. The code of a module of your own is not in it."""
        self._require_training()
        classifier_file.save(self, path)

    @classmethod
    def load(cls, path: str | Path, backbone: nn.Module | None = None) -> Self:
        """Load what `save` wrote; nothing in the file can run code.

        Args:
            path: the file.
            backbone: your own module, of the same shape, if the classifier was built with one.
        """
        return classifier_file.load(cls, path, backbone)

    def __repr__(self) -> str:
        backbone = self.backbone if isinstance(self.backbone, str) else type(self.backbone).__name__
        known = f"{self.num_classes} classes" if self._networks else "not trained"
        return f"{type(self).__name__}({self.method_name}, {backbone}: {known})"

    def _require_training(self) -> None:
        if not self._networks:
            raise NotTrainedError("this classifier is not trained yet; call fit first")

    def _shown(self, data: Data | None) -> GraphTensors:
        """A graph as the networks want it; the one that the classifier was trained on if none is given."""
        self._require_training()
        if data is not None:
            check_nodes(data, self._num_features)
            like = next(self._networks.parameters())
            return GraphTensors.build(data.x, data.edge_index, normalise=self._normalises, like=like)
        if self._graph is None:
            raise EvidentiaError("a loaded classifier has no graph of its own; give predict(data) or embed(data)")
        return self._graph

    def _choose_normalisation(self, x: Tensor) -> bool:
        signed = bool((stored_values(x) < 0).any())
        if signed and self.normalise:
            raise EvidentiaError(
                "features below 0 cannot be divided by their sum; leave out normalise, or set it False"
            )
        return not signed if self.normalise is None else self.normalise

    def _members(self, role: Role) -> list[Backbone]:
        return cast("list[Backbone]", list(cast(nn.ModuleList, self._networks[role])))

    def _build(self, features: int, classes: int, seed: int, *, teacher: bool = False) -> Backbone:
        if isinstance(self.backbone, nn.Module) and not teacher:
            # A copy for each network; the user's module itself stays untrained.
            network = OwnBackbone(copy.deepcopy(self.backbone), classes)
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
        name: str | list[str] = self.backbone if isinstance(self.backbone, str) else _identity(self.backbone)
        return {"backbone": name, "options": self.options, "classes": classes, "normalise": self._normalises}

    def _evidence(self, logits: Tensor, graph: GraphTensors) -> Tensor:
        """Log evidence of every node, shape `(N, K)`: for what, how much, and what neighbours add to it."""
        if "strength" in self._networks:
            own = logits.logsumexp(-1, keepdim=True)
            other = self._passes("strength", graph).logits.logsumexp(-1, keepdim=True)
            # The geometric mean of what both networks say there is: where one is misled, the other seldom is.
            logits = logits + (other - own) / 2
        if self.propagation == "none":
            return logits
        return _SPREADS["evidence" if self._spreads_classes else "strength"](logits, graph.walk)

    def _passes(self, role: Role, graph: GraphTensors) -> Passes:
        return run_passes(
            self._members(role), graph, self.method, self.passes, self.settings.seed, self.settings.epochs
        )

    @torch.no_grad()
    def _gate(self, graph: GraphTensors, data: Data) -> bool:
        """Whether spreading all evidence raises the accuracy on the validation nodes."""
        logits = self._passes("classes", graph).logits
        before, after = (
            int((values.argmax(-1) == data.y)[data.val_mask].sum())
            for values in (logits, propagate_evidence(logits, graph.walk))
        )
        return after > before


def _identity(module: nn.Module) -> list[str]:
    """What a user's module is known by: another start is another run."""
    return [type(module).__name__, module_digest(module)]


def _start_anew(layer: nn.Module) -> None:
    reset = getattr(layer, "reset_parameters", None)
    if callable(reset):
        reset()
