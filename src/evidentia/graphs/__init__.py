"""Graph classifiers that know which nodes they get wrong and which they have never seen (thesis chapter 2)."""

from evidentia.graphs.checks import check_graph
from evidentia.graphs.data import load_graph
from evidentia.graphs.estimator import GraphClassifier
from evidentia.graphs.gpn import GPN
from evidentia.graphs.hops import hop_counts
from evidentia.graphs.kernel_prior import kernel_prior
from evidentia.graphs.methods import GRAPH_METHODS, GraphMethod
from evidentia.graphs.models import BACKBONES, Backbone
from evidentia.graphs.propagation import propagate_energy, propagate_evidence, propagate_strength
from evidentia.graphs.sampling import NeighbourSampler, SampledSubgraph
from evidentia.graphs.splits import author_draws, misclassification_split, ood_split
from evidentia.graphs.synthetic import citation_graph
from evidentia.graphs.tasks import TaskResult, run_task
from evidentia.graphs.training import GraphTraining
from evidentia.graphs.walk_prior import walk_prior

__all__ = [
    "BACKBONES",
    "GPN",
    "GRAPH_METHODS",
    "Backbone",
    "GraphClassifier",
    "GraphMethod",
    "GraphTraining",
    "NeighbourSampler",
    "SampledSubgraph",
    "TaskResult",
    "author_draws",
    "check_graph",
    "citation_graph",
    "hop_counts",
    "kernel_prior",
    "load_graph",
    "misclassification_split",
    "ood_split",
    "propagate_energy",
    "propagate_evidence",
    "propagate_strength",
    "run_task",
    "walk_prior",
]
