"""The Graph Posterior Network (Stadler et al., NeurIPS 2021): evidence as the density of a node's latent position.

Written from the paper's formulas. Where the paper leaves a choice, it is that of the authors' released configuration
for 16 latent dimensions.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import whole_number
from evidentia.graphs.graph_tensors import GraphTensors
from evidentia.graphs.models import BACKBONES, Backbone, Projection
from evidentia.graphs.propagation import personalised_pagerank
from evidentia.graphs.sparse_matrix import SparseMatrix

# Log pseudo-counts stay within these bounds, so that neither they nor their sums over neighbours leave float32.
_LOG_COUNT_BOUND = 30.0

# For so many epochs the flows learn alone, from an encoder that stands still.
_WARMUP_EPOCHS = 5


class RadialFlows(nn.Module):
    r"""One density a class over a latent space, each a chain of radial flows (Rezende and Mohamed 2015).

    A layer moves points towards its centre c or away from it: with $r = |z - c|$ and $a, b > 0$,
    $f(z) = c + \frac{r + b}{r + a} (z - c)$. That is the usual $z + \beta h(r) (z - c)$ with $h = 1/(a + r)$ and
    $\beta = b - a > -a$, which is what keeps it invertible. Its Jacobian has the determinant
    $\left(\frac{r + b}{r + a}\right)^{d - 1} \frac{r^2 + 2ar + ab}{(r + a)^2}$, and the chain ends in a standard
    normal: $\ln q(z) = \ln \mathcal{N}(f(z); 0, I) + \sum \ln \det$.

    Args:
        classes: how many densities.
        dim: dimensions d of the latent space.
        layers: flows in a chain.

    Example:
        >>> flows = RadialFlows(classes=2, dim=1, layers=10)
        >>> grid = torch.linspace(-40, 40, 8001)
        >>> torch.trapezoid(flows(grid.unsqueeze(-1)).exp(), grid, dim=0).tolist()  # doctest: +NUMBER
        [1.00, 1.00]
    """

    def __init__(self, classes: int, dim: int, layers: int = 10) -> None:
        super().__init__()
        for name, value in {"classes": classes, "dim": dim, "layers": layers}.items():
            whole_number(value, name, 1)
        width = 1 / math.sqrt(dim)
        # Small and random: every layer is near the identity, and no two are alike.
        self.centres = nn.Parameter(torch.empty(layers, classes, dim).uniform_(-width, width))
        self.raw = nn.Parameter(torch.empty(2, layers, classes).uniform_(-width, width))

    def forward(self, z: Tensor) -> Tensor:
        """Log densities, shape `(..., classes)`, of points of shape `(..., dim)`."""
        moved, log_det = self.transform(z)
        normal = -0.5 * (moved.square().sum(-1) + z.shape[-1] * math.log(2 * math.pi))
        return normal + log_det

    def transform(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Where each class moves points, shape `(..., classes, dim)`, and the log determinant of its Jacobian."""
        dim = self.centres.shape[-1]
        if z.ndim == 0 or z.shape[-1] != dim:
            raise EvidentiaError(f"the flows are over {dim} dimensions, got points of shape {tuple(z.shape)}")
        point = z.unsqueeze(-2)
        log_det = z.new_zeros(())
        for centre, a, b in zip(self.centres, *F.softplus(self.raw), strict=True):
            offset = point - centre
            r = torch.linalg.vector_norm(offset, dim=-1)
            stretch = (r + b) / (r + a)
            point = centre + stretch.unsqueeze(-1) * offset
            # The second factor of the determinant, written so that nothing cancels and it is positive at a glance.
            along = (r * (r + 2 * a) + a * b) / (r + a).square()
            log_det = log_det + (dim - 1) * stretch.log() + along.log()
        return point, log_det


@BACKBONES.register("gpn")
class GPN(Backbone):
    r"""Log pseudo-counts $\ln \beta^{agg}$ of every node and class; $\alpha = 1 + \beta^{agg}$.

    A network of two layers maps a node's own features to a latent z, whose density under each class is evidence:
    $\beta_c = \exp(\ln q(z \mid c) + \ln P(c) + B)$. Far from all training nodes it vanishes. Personalised PageRank
    over the normalised adjacency (teleport 0.1, 10 steps) then spreads the counts. The certainty budget
    $B = \frac{d}{2} \ln 4\pi$ grows with the latent dimension as the density of a normal falls. (The authors' release
    adds $\ln K$ to it with 10 latent dimensions and not with 16; like the latter, this does not.)

    The published way to train it: the expected cross entropy less 0.0001 times the entropy of the Dirichlet, summed
    over training nodes, with weight decay 0.001 on the encoder; five epochs of the flows alone come first.

    Args:
        features: F.
        outputs: number of classes K.
        hidden: width of the encoder's hidden layer.
        dropout: dropout rate of the hidden layer.
        latent: dimensions d of the latent space.
        layers: radial flows a class.

    Example:
        >>> graph = GraphTensors.build(torch.eye(3), torch.tensor([[0, 1], [1, 0]]))
        >>> GPN(features=3, outputs=2)(graph).shape
        torch.Size([1, 3, 2])
    """

    log_prior: Tensor

    def __init__(
        self,
        features: int,
        outputs: int,
        hidden: int = 64,
        dropout: float = 0.5,
        latent: int = 16,
        layers: int = 10,
    ) -> None:
        super().__init__()
        self.flows = RadialFlows(outputs, latent, layers)
        self.first = Projection(features, hidden, dropout=0.0)
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.second = nn.Linear(hidden, latent)
        self.dropout = dropout
        self.budget = 0.5 * latent * math.log(4 * math.pi)
        self.register_buffer("log_prior", torch.full((outputs,), -math.log(outputs)))
        self._warming_up = False

    def start_training(self, labels: Tensor) -> None:
        """Take P(c) from the labels of the training nodes; until then, all classes are as likely."""
        counts = torch.bincount(labels, minlength=len(self.log_prior)).to(self.log_prior)
        if len(counts) > len(self.log_prior) or not bool((counts > 0).all()):
            raise EvidentiaError(
                f"labels must name each of the {len(self.log_prior)} classes and no other, got {counts.int().tolist()} "
                "nodes a class"
            )
        self.log_prior = (counts / counts.sum()).log()

    def start_epoch(self, epoch: int) -> None:
        """In the first five epochs the encoder gets no gradients: the flows learn alone."""
        self._warming_up = epoch < _WARMUP_EPOCHS

    def hidden(self, graph: GraphTensors, passes: int = 1) -> Tensor:
        """relu(X W + b)."""
        return F.relu(self.first(self._features(graph), passes) + self.bias)

    def latent(self, graph: GraphTensors, passes: int = 1) -> Tensor:
        """Where the encoder puts each node, shape `(passes, N, latent)`."""
        z: Tensor = self.second(F.dropout(self.hidden(graph, passes), self.dropout, self.training))
        return z

    def forward(self, graph: GraphTensors, passes: int = 1) -> Tensor:
        """Log pseudo-counts of shape `(passes, N, outputs)`."""
        z = self.latent(graph, passes)
        log_counts = self.flows(z.detach() if self._warming_up else z) + self.log_prior + self.budget
        counts = log_counts.clamp(-_LOG_COUNT_BOUND, _LOG_COUNT_BOUND).exp()
        wide = counts.movedim(0, 1).flatten(1)
        spread = personalised_pagerank(wide, graph.adjacency, teleport=0.1, steps=10)
        return spread.reshape(graph.num_nodes, passes, -1).movedim(1, 0).log()

    def _features(self, graph: GraphTensors) -> SparseMatrix | Tensor:
        return graph.features


@BACKBONES.register("unit-gpn")
class UnitGPN(GPN):
    """A posterior network that sees each node's features as a vector of length 1.

    Features that sum to 1 are of length 0.06 where a node has 267 words, as on Amazon's Computers. The encoder then
    puts all nodes in one place, and never gets away from there: no flow can tell them apart, so nothing draws the
    encoder either.
    """

    def _features(self, graph: GraphTensors) -> SparseMatrix | Tensor:
        features = graph.features
        return features.unit_rows() if isinstance(features, SparseMatrix) else F.normalize(features, dim=-1)
