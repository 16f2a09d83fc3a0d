"""Which nodes to train on, to choose by and to test on: the protocols of the thesis' graph experiments.

Every function returns a new graph and leaves the given one as it is. Graphs that bring `train_mask` and `val_mask`
(Planetoid's public split) keep them; for others, both are drawn by the seed.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import torch
from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.scalars import whole_number
from evidentia.graphs.checks import check_labels, check_mask

if TYPE_CHECKING:
    from torch_geometric.data import Data

OodClasses: TypeAlias = Literal["last", "random"] | Sequence[int]


def misclassification_split(
    data: Data, seed: int = 0, *, per_class: int = 20, validation: int = 500, public: bool | None = None
) -> Data:
    """A graph with masks for telling right predictions from wrong ones.

    Test nodes are all labelled nodes outside training and validation.

    Args:
        data: a graph with labels `y`, -1 for nodes without one.
        seed: fixes what is drawn.
        per_class: how many training nodes to draw of each class, where the graph brings no split.
        validation: how many validation nodes to draw.
        public: keep the graph's own training and validation nodes; by default, if it has any.

    Example:
        >>> from evidentia.graphs import citation_graph
        >>> data = misclassification_split(citation_graph(nodes=1000, classes=4), seed=1, public=False, validation=100)
        >>> int(data.train_mask.sum()), int(data.val_mask.sum()), int(data.test_mask.sum())
        (80, 100, 820)
    """
    y = check_labels(data)
    classes = list(range(_num_classes(data, y)))
    train, val = _train_and_validation(data, y, classes, _generator(seed), per_class, validation, public)
    return _with(data, train_mask=train, val_mask=val, test_mask=(y >= 0) & ~train & ~val)


def ood_split(
    data: Data,
    seed: int = 0,
    classes: OodClasses = "last",
    *,
    per_class: int = 20,
    validation: int = 500,
    public: bool | None = None,
) -> Data:
    """A graph in which some classes are unknown to the classifier, for telling their nodes from the others.

    The last `K // 2` of K classes are out of distribution: for the thesis' six graphs that is just what it uses (Cora
    4-6, Citeseer 3-5, Pubmed 2, Photo 4-7, Computers 5-9, Physics 3-4), and it is the rule for any other.

    In the result, `y` numbers the other classes from 0 and is -1 for all other nodes, `num_classes` counts the
    other classes, `ood_mask` marks nodes out of distribution, `ood_classes` lists their classes and `y_original` has
    the labels as given. Training and validation nodes are in distribution. With a public split they are those of the
    public ones that are, so validation nodes are fewer than the public 500, and `spare_mask` marks the public training
    nodes that nothing is trained on. Test nodes are all labelled nodes outside training and validation, in
    distribution or out.

    Args:
        data: a graph with labels `y`, -1 for nodes without one.
        seed: fixes what is drawn.
        classes: which classes are out of distribution: the last, as many drawn at random, or a list of them.
        per_class: how many training nodes to draw of each class in distribution, where the graph brings no split.
        validation: how many validation nodes to draw.
        public: keep the graph's own training and validation nodes; by default, if it has any.

    Example:
        >>> from evidentia.graphs import citation_graph
        >>> data = ood_split(citation_graph(nodes=1000, classes=7))
        >>> data.ood_classes, data.num_classes, int(data.train_mask.sum())
        ([4, 5, 6], 4, 80)
    """
    y = check_labels(data)
    generator = _generator(seed)
    count = _num_classes(data, y)
    outside = _ood_classes(classes, count, generator)
    inside = [label for label in range(count) if label not in outside]
    train, val = _train_and_validation(data, y, inside, generator, per_class, validation, public)
    ood = torch.isin(y, torch.tensor(outside, device=y.device))
    spare = ood & check_mask(data, "train_mask", len(y)) if _keeps_own(data, public) else torch.zeros_like(ood)
    # One entry more than there are classes, so that -1 stays -1.
    number = torch.full((count + 1,), -1, dtype=torch.long, device=y.device)
    number[inside] = torch.arange(len(inside), device=y.device)
    new = _with(
        data,
        y=number[y.long()],
        y_original=y,
        ood_mask=ood,
        spare_mask=spare,
        ood_classes=outside,
        num_classes=len(inside),
        train_mask=train,
        val_mask=val,
        test_mask=(y >= 0) & ~train & ~val,
    )
    if (names := getattr(data, "class_names", None)) is not None:
        new.class_names = [names[label] for label in inside]
    return new


def author_draws(data: Data, seed: int = 0, *, draws: int = 10, size: int = 1000) -> Tensor:
    """The test nodes of the published code: draws from all nodes outside training, validation nodes included.

    For comparison with published figures only: nodes that choices were made on do not belong into a test. Nodes
    without a label are left out, and so are public training nodes of classes out of distribution, as in the published
    code, although nothing is trained on them.

    Args:
        data: what `misclassification_split` or `ood_split` gave.
        seed: fixes what is drawn.
        draws: how many draws.
        size: nodes a draw, each at most once.

    Returns:
        Node numbers, shape `(draws, size)`.

    Example:
        >>> from evidentia.graphs import citation_graph
        >>> split = misclassification_split(citation_graph(nodes=300), validation=50)
        >>> author_draws(split, draws=2, size=100).shape
        torch.Size([2, 100])
    """
    y = check_labels(data)
    allowed = ~check_mask(data, "train_mask", len(y)) & (y >= 0)
    if getattr(data, "ood_mask", None) is not None:
        allowed |= check_mask(data, "ood_mask", len(y)) & ~check_mask(data, "spare_mask", len(y))
    pool = allowed.nonzero().flatten()
    if whole_number(draws, "draws", 0) < 1 or not 0 < whole_number(size, "size", 0) <= len(pool):
        raise EvidentiaError(
            f"{draws} draws of {size} nodes are not to be had: at least 1 draw of 1 to {len(pool)} nodes is, as so "
            "many labelled nodes are outside training; draw fewer, or use the protocol 'clean', which tests on all"
        )
    generator = _generator(seed)
    return torch.stack([pool[_order(len(pool), generator, y.device)[:size]] for _ in range(draws)])


def draw_nodes(
    y: Tensor, classes: Sequence[int], generator: torch.Generator, per_class: int, validation: int
) -> tuple[Tensor, Tensor]:
    """Masks of `per_class` nodes of each class, and of `validation` others of these classes."""
    check_counts(per_class=per_class, validation=validation)
    train, val = torch.zeros_like(y, dtype=torch.bool), torch.zeros_like(y, dtype=torch.bool)
    for label in classes:
        members = (y == label).nonzero().flatten()
        if len(members) < per_class:
            raise EvidentiaError(
                f"class {label} has {len(members)} nodes, but {per_class} are needed to train on; "
                "lower per_class, or leave the class out"
            )
        train[members[_order(len(members), generator, y.device)[:per_class]]] = True
    rest = (torch.isin(y, torch.tensor(classes, device=y.device)) & ~train).nonzero().flatten()
    if len(rest) < validation:
        raise EvidentiaError(
            f"{validation} validation nodes are needed, but only {len(rest)} nodes are left after training; "
            "lower validation or per_class"
        )
    val[rest[_order(len(rest), generator, y.device)[:validation]]] = True
    return train, val


def check_counts(**counts: int) -> None:
    """Refuse numbers of nodes to draw, by their names, that are none."""
    for name, count in counts.items():
        whole_number(count, name, 1)


def check_ood_classes(classes: OodClasses) -> None:
    """Refuse what names no classes, whatever the graph."""
    if isinstance(classes, str):
        if classes not in ("last", "random"):
            raise EvidentiaError(f"classes must be 'last', 'random' or a list of classes, got {classes!r}")
        return
    try:
        for label in classes:
            operator.index(label)
    except TypeError:
        raise EvidentiaError(f"classes must be 'last', 'random' or a list of whole numbers, got {classes!r}") from None


def _train_and_validation(
    data: Data,
    y: Tensor,
    classes: list[int],
    generator: torch.Generator,
    per_class: int,
    validation: int,
    public: bool | None,
) -> tuple[Tensor, Tensor]:
    if not _keeps_own(data, public):
        return draw_nodes(y, classes, generator, per_class, validation)
    inside = torch.isin(y, torch.tensor(classes, device=y.device))
    train, val = (check_mask(data, name, len(y)) & inside for name in ("train_mask", "val_mask"))
    if untrained := [label for label in classes if not bool((train & (y == label)).any())]:
        raise EvidentiaError(
            f"the graph's own split has no training node of class {untrained[0]}; use public=False to draw another"
        )
    if not bool(val.any()):
        raise EvidentiaError(
            "the graph's own split has no validation node in distribution; use public=False to draw another"
        )
    return train, val


def _keeps_own(data: Data, public: bool | None) -> bool:
    """Whether training and validation nodes are the graph's own."""
    own = all(getattr(data, name, None) is not None for name in ("train_mask", "val_mask"))
    if public and not own:
        raise EvidentiaError("the graph has no split of its own (no train_mask and val_mask); use public=False")
    return own if public is None else public


def _ood_classes(classes: OodClasses, count: int, generator: torch.Generator) -> list[int]:
    check_ood_classes(classes)
    if isinstance(classes, str):
        if count < 3:
            raise EvidentiaError(f"at least 3 classes are needed to leave some out and tell 2 apart, got {count}")
        order = torch.randperm(count, generator=generator).tolist() if classes == "random" else list(range(count))
        return sorted(order[count - count // 2 :])
    chosen = sorted({operator.index(label) for label in classes})
    if not chosen or chosen[0] < 0 or chosen[-1] >= count or count - len(chosen) < 2:
        raise EvidentiaError(
            f"the classes out of distribution must be some of 0 to {count - 1} and leave at least 2, "
            f"got {list(classes)}"
        )
    return chosen


def _num_classes(data: Data, y: Tensor) -> int:
    highest = int(y.max()) if len(y) else -1
    if highest < 0 or int(y.min()) < -1:
        raise EvidentiaError("data.y must hold labels from 0 on, or -1 where a node has none, and at least one label")
    return max(int(getattr(data, "num_classes", None) or 0), highest + 1)


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(whole_number(seed, "seed", 0))


def _order(count: int, generator: torch.Generator, device: torch.device) -> Tensor:
    return torch.randperm(count, generator=generator).to(device)


def _with(data: Data, **attributes: object) -> Data:
    new = copy.copy(data)
    for name, value in attributes.items():
        setattr(new, name, value)
    return new
