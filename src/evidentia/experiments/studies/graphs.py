"""Chapter 2: mistakes and unknown classes among the nodes of graphs."""

from __future__ import annotations

from evidentia.experiments.study import Beside, Comparison, Pictures, Preset, Study

GRAPHS = ["cora", "citeseer", "pubmed", "photo", "computers", "physics"]
# The thesis' method, the rivals of its main tables, and ours for unknown classes, of which it has no figure.
METHODS = ["s-bgcn-t-k", "edl-gcn", "dpn-gcn", "drop-gcn", "gcn"]
OURS = "s-bgcn-t-kw"
# Later methods of others, in our implementation.
PEERS = ["gpn", "gnnsafe-energy"]

_UNCERTAINTIES = ("vacuity", "dissonance", "aleatoric", "epistemic", "entropy")
_SCORES = [f"{score}.{name}" for score in ("auroc", "aupr") for name in _UNCERTAINTIES]
# The thesis has 50 seeds for the citation graphs and 10 splits for the others; noise is judged by the fewer.
_RUNS = 10
_CITATION = ("cora", "citeseer")

MISCLASSIFICATION = Study(
    name="graph-misclassification",
    title="Nodes that are labelled wrong",
    job="graph",
    fixed={"task": "misclassification"},
    axes={"data": GRAPHS, "method": METHODS},
    metrics=[*_SCORES, "accuracy"],
    unit="%",
    beside=Beside(table="graph-misclassification", row="{data}/{method}", runs=_RUNS),
    compare=Comparison(axis="method", against="s-bgcn-t-k", metrics=["auroc.entropy", "accuracy"]),
    presets={
        "quick": Preset(seeds=3, keep={"data": _CITATION, "method": ["s-bgcn-t-k", "drop-gcn", "gcn"]}),
        "full": Preset(seeds=10),
    },
    pictures=Pictures(keep={"data": ["cora"], "method": ["s-bgcn-t-k"]}),
)

# Accuracies of the citation graphs are commonly those of these test nodes.
PLANETOID = Study(
    name="graph-planetoid",
    title="Nodes that are labelled wrong, among the 1,000 test nodes that Planetoid comes with",
    job="graph",
    fixed={"task": "misclassification", "protocol": "public"},
    axes={"data": [*_CITATION, "pubmed"], "method": ["s-bgcn-t-k", "gcn"]},
    metrics=[*_SCORES, "accuracy"],
    unit="%",
    beside=Beside(table="graph-misclassification", row="{data}/{method}", runs=_RUNS),
    compare=Comparison(axis="method", against="s-bgcn-t-k", metrics=["auroc.entropy", "accuracy"]),
    presets={"quick": Preset(seeds=3, keep={"data": _CITATION}), "full": Preset(seeds=10)},
)

OOD = Study(
    name="graph-ood",
    title="Nodes of classes never seen",
    job="graph",
    fixed={"task": "ood"},
    axes={"data": GRAPHS, "method": [*METHODS, *PEERS, OURS]},
    metrics=[*_SCORES, "auroc.energy", "aupr.energy", "accuracy"],
    unit="%",
    # Ours stands beside the published figures of the method that it builds on.
    beside=Beside(table="graph-ood", row="{data}/{method}", names={"method": {OURS: "s-bgcn-t-k"}}, runs=_RUNS),
    compare=Comparison(axis="method", against="s-bgcn-t-k", metrics=["auroc.vacuity", "auroc.entropy"]),
    presets={
        "quick": Preset(seeds=3, keep={"data": _CITATION, "method": ["s-bgcn-t-k", "gcn", OURS]}),
        "full": Preset(seeds=10),
    },
    pictures=Pictures(keep={"data": ["cora"], "method": ["s-bgcn-t-k", OURS]}),
)

ABLATION = Study(
    name="graph-ablation",
    title="What the teacher and the kernel prior add",
    job="graph",
    axes={
        "task": ["misclassification", "ood"],
        "data": GRAPHS,
        "method": ["s-bgcn-t-k", "s-bgcn-t", "s-bgcn", "s-gcn"],
    },
    metrics=[*_SCORES, "accuracy"],
    unit="%",
    beside=Beside(table="graph-ablation-{task}", row="{data}/{method}", runs=_RUNS),
    compare=Comparison(axis="method", against="s-bgcn-t-k", metrics=["auroc.vacuity", "auroc.dissonance"]),
    presets={"quick": Preset(seeds=2, keep={"data": ["cora"]}), "full": Preset(seeds=10)},
)

DROPEDGE = Study(
    name="graph-dropedge",
    title="DropEdge at telling mistakes",
    job="graph",
    fixed={"task": "misclassification"},
    axes={"data": _CITATION, "method": ["s-bgcn-t-k", "dropedge"]},
    metrics=_SCORES,
    unit="%",
    beside=Beside(table="graph-dropedge", row="{data}/{method}", runs=_RUNS),
    compare=Comparison(axis="method", against="s-bgcn-t-k", metrics=["auroc.entropy"]),
    presets={"quick": Preset(seeds=3), "full": Preset(seeds=10)},
)

STUDIES = (MISCLASSIFICATION, PLANETOID, OOD, ABLATION, DROPEDGE)
